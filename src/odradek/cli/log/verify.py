"""`odradek log verify`: scan log directories and report damage, its position, and what to do."""

from __future__ import annotations

import sys

import click

from odradek.cli.options import UsageProblem, check_directory, output_option
from odradek.cli.printer import Printer
from odradek.cli.progress import progress_bar
from odradek.log.offline.read_only import NotALog
from odradek.log.offline.verify.directory import Summary, bytes_to_read, verify
from odradek.log.offline.verify.finding import LogFinding, Report


@click.command("verify")
@click.argument("paths", nargs=-1, required=True)
@output_option
def command(paths: tuple[str, ...], output: str) -> None:
    """Check log directories or single partitions, ours or Kafka's; nothing is changed.

    Checks every batch (CRC, structure of every record, order of offsets and epochs), every index, snapshot
    and checkpoint. Any changed byte is found, except for these, which cannot be compared with anything
    else: a base offset inside of a gap that compaction left; an index entry that became another one
    which leads to the same records; an epoch in which nothing was written; a checkpoint's offset that became
    another one inside of the log; a topic id, if the topic has one partition here; values in meta.properties.

    A log that a broker is writing may appear torn at its end: stop the broker, or verify a fork
    of the directory (odradek log fork). The exit code is 1 if anything was found.
    """
    for path in paths:
        check_directory(path)
    printer = Printer()
    report = _report(printer, output)
    try:
        with progress_bar("verify", sum(map(bytes_to_read, paths))) as advance:
            summaries = [verify(path, report, advance) for path in paths]
    except NotALog as error:
        raise UsageProblem(str(error)) from None
    _print_summary(printer, output, summaries)
    sys.exit(1 if any(summary.finding_count for summary in summaries) else 0)


def _report(printer: Printer, output: str) -> Report:
    def as_json(found: LogFinding) -> None:
        printer.json_line({"kind": "problem", "file": found.path, **_without_path(found)})

    def as_text(found: LogFinding) -> None:
        printer.line(str(found))
        printer.line(f"    next: {found.advice}")

    return as_json if output == "json" else as_text


def _without_path(found: LogFinding) -> dict[str, object]:
    return {"position": found.position, "problem": found.problem, "advice": found.advice}


def _print_summary(printer: Printer, output: str, summaries: list[Summary]) -> None:
    partitions = sum(summary.partition_count for summary in summaries)
    batches = sum(summary.batch_count for summary in summaries)
    problems = sum(summary.finding_count for summary in summaries)
    if output == "json":
        fields = {"kind": "summary", "partitions": partitions, "batches": batches, "problems": problems}
        printer.json_line(fields)
    else:
        printer.line(f"{partitions} partitions, {batches} batches, {problems or 'no'} problems")
    printer.flush()
