"""`odradek log fork`: snapshot a log directory, or one partition of it, by hard links."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import click

from odradek.broker.settings.broker_config import STORE_FILE
from odradek.cli.options import UsageProblem, check_directory, output_option
from odradek.coordination.embedded.copying import copy_store
from odradek.coordination.errors import StoreError
from odradek.log.offline.fork import CannotFork, ForkReport, fork
from odradek.log.offline.read_only import NotALog


@click.command("fork")
@click.argument("source")
@click.argument("target")
@click.option(
    "--keep-identity",
    is_flag=True,
    help="Copy meta.properties also where the store is not in SOURCE: the same broker of the same cluster.",
)
@output_option
def command(source: str, target: str, keep_identity: bool, output: str) -> None:
    """Make TARGET, a new log directory, out of SOURCE, a log directory or a single partition.

    Logs of closed segments are linked, so that this takes milliseconds and no space; what may still change is
    copied. SOURCE may be in use: of each partition the fork then has a
    prefix, whole batches only, with everything below the high watermark that was checkpointed last. On
    another file system everything is copied. Either side may be written and truncated later.

    The embedded store (coordination.db) and meta.properties are copied with it, so that `odradek start
    --data-dir TARGET` serves the fork: the same topics, settings, groups and cluster id. Where the store is
    elsewhere, a broker that starts on the fork with a new embedded store creates the topics again, without
    their settings.
    """
    check_directory(source)
    if os.path.realpath(target).startswith(os.path.realpath(source) + os.sep):
        raise UsageProblem(f"{target} lies inside of {source}")
    started = time.perf_counter()
    try:
        report = _fork(Path(source), Path(target), keep_identity)
    except (NotALog, CannotFork, StoreError) as error:
        raise UsageProblem(str(error)) from None
    milliseconds = (time.perf_counter() - started) * 1000
    if report.could_not_link:
        click.echo(f"Warning: {target} is on another file system; everything was copied", err=True)
    _print(report, milliseconds, output)


def _fork(source: Path, target: Path, keep_identity: bool) -> ForkReport:
    """Fork the logs, then the store: a topic created in between is empty in the fork, not a stray."""
    has_store = (source / STORE_FILE).exists()
    report = fork(str(source), str(target), keeps_identity=keep_identity or has_store)
    if has_store:
        try:
            copy_store(source / STORE_FILE, target / STORE_FILE)
        except BaseException:
            shutil.rmtree(target)
            raise
    return report


def _print(report: ForkReport, milliseconds: float, output: str) -> None:
    if output == "json":
        fields = {
            "partitions": report.partitions,
            "linkedFiles": report.linked_files,
            "linkedBytes": report.linked_bytes,
            "copiedFiles": report.copied_files,
            "copiedBytes": report.copied_bytes,
            "milliseconds": round(milliseconds, 3),
        }
        click.echo(json.dumps(fields))
        return
    click.echo(
        f"{report.partitions} partitions in {milliseconds:.1f} ms: "
        f"{report.linked_files} files linked ({report.linked_bytes} bytes), "
        f"{report.copied_files} copied ({report.copied_bytes} bytes)"
    )
