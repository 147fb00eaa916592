"""`odradek log dump`: print segments and indexes as Kafka's DumpLogSegments does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import click

from odradek.cli.log.decoders import (
    BYTES_DECODERS,
    DEFAULT_CLASS,
    BytesDecoder,
    RecordDecoder,
    bytes_decoder,
    plain_decoder,
)
from odradek.cli.log.dump_files import INT_MAX, Dump, DumpOptions, size_of
from odradek.cli.log.dump_output import JsonOutput, TextOutput
from odradek.cli.options import UsageProblem, check_readable, output_option
from odradek.cli.printer import Printer
from odradek.cli.progress import progress_bar
from odradek.log.filenames import SegmentFile, parse_segment_filename
from odradek.log.offline.read_only import NotALog, find_partitions

_NOT_OFFERED = {
    "--cluster-metadata-decoder": "odradek has no KRaft metadata log",
    "--remote-log-metadata-decoder": "odradek has no tiered storage",
    "--share-group-state-decoder": "odradek keeps no share group state",
}


def _refuse(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        flag = parameter.opts[0]
        raise UsageProblem(
            f"{flag} is not offered: {_NOT_OFFERED[flag]}. Use Kafka's own tool for such logs."
        )


def _refused_flags(function: click.decorators.FC) -> click.decorators.FC:
    for flag in _NOT_OFFERED:
        function = click.option(flag, is_flag=True, hidden=True, expose_value=False, callback=_refuse)(
            function
        )
    return function


@click.command("dump")
@click.argument("paths", nargs=-1)
@click.option("--files", metavar="FILE,FILE", help="Files as Kafka's tool takes them, separated by commas.")
@click.option("--print-data-log", is_flag=True, help="Print keys and values. Any decoder implies it.")
@click.option("--deep-iteration", is_flag=True, help="Print one line per record of each batch.")
@click.option("--skip-record-metadata", is_flag=True, help="Print only key and value of each record.")
@click.option(
    "--index-sanity-check", is_flag=True, help="Only check whether a broker would rebuild an index."
)
@click.option(
    "--verify-index-only", is_flag=True, help="Check indexes against the log without printing them."
)
@click.option(
    "--max-message-size",
    type=click.IntRange(0),
    default=DumpOptions().max_message_size,
    show_default=True,
    help="An index that points to a larger batch is a mismatch.",
)
@click.option(
    "--max-bytes",
    type=click.IntRange(0),
    default=INT_MAX,
    help="Read no more than this of each log file; whole batches only.",
)
@click.option("--offsets-decoder", is_flag=True, help="Decode the records of __consumer_offsets.")
@click.option("--transaction-log-decoder", is_flag=True, help="Decode the records of __transaction_state.")
@click.option(
    "--key-decoder-class",
    is_flag=False,
    flag_value=DEFAULT_CLASS,
    metavar="CLASS",
    help=f"How to show keys: {', '.join(BYTES_DECODERS)}.",
)
@click.option(
    "--value-decoder-class",
    is_flag=False,
    flag_value=DEFAULT_CLASS,
    metavar="CLASS",
    help="How to show values: as for keys.",
)
@_refused_flags
@output_option
def command(
    paths: tuple[str, ...],
    files: str | None,
    print_data_log: bool,
    deep_iteration: bool,
    skip_record_metadata: bool,
    index_sanity_check: bool,
    verify_index_only: bool,
    max_message_size: int,
    max_bytes: int,
    offsets_decoder: bool,
    transaction_log_decoder: bool,
    key_decoder_class: str | None,
    value_decoder_class: str | None,
    output: str,
) -> None:
    """Print segments (.log), indexes (.index, .timeindex, .txnindex) and producer snapshots (.snapshot).

    PATHS are files, partition directories or log directories; for a directory, all its files are printed.
    Lines and flags are those of Kafka's DumpLogSegments. Problems are printed to standard error at the end,
    and the exit code is then 1. Gaps between offsets are printed, but are normal in a compacted log.
    """
    found = list(_segment_files([*paths, *_split(files)]))
    decoder = _decoder(offsets_decoder, transaction_log_decoder, key_decoder_class, value_decoder_class)
    if decoder is None and print_data_log:
        decoder = plain_decoder(bytes_decoder(DEFAULT_CLASS), bytes_decoder(DEFAULT_CLASS))
    options = DumpOptions(
        deep_iteration or decoder is not None,
        decoder,
        skip_record_metadata,
        index_sanity_check,
        verify_index_only,
        max_message_size,
        max_bytes,
    )
    sys.exit(1 if _dump(found, options, output) else 0)


def _dump(found: list[tuple[str, SegmentFile]], options: DumpOptions, output: str) -> bool:
    """Dump all files; whether problems were found."""
    printer = Printer()
    sink = TextOutput(printer) if output == "text" else JsonOutput(printer)
    with progress_bar("dump", sum(size_of(path, options) for path, _ in found)) as advance:
        dump = Dump(options, sink, advance)
        for path, file in found:
            dump.file(path, file)
    printer.flush()
    for heading, notes in (("Non-consecutive offsets in", dump.gaps), ("Problem in", dump.problems)):
        for note in notes.first:
            click.echo(f"{heading} {note}", err=True)
        if notes.count > len(notes.first):
            click.echo(f"... and {notes.count - len(notes.first)} more like this", err=True)
    return dump.problems.count > 0


def _split(files: str | None) -> list[str]:
    return [path for path in (files or "").split(",") if path]


def _segment_files(paths: Iterable[str]) -> Iterable[tuple[str, SegmentFile]]:
    """Every file to dump, with its parsed name; UsageProblem if there is none, or one cannot be dumped."""
    any_path = False
    for path in paths:
        any_path = True
        check_readable(path)
        if os.path.isdir(path):
            yield from _files_in(path)
            continue
        file = parse_segment_filename(os.path.basename(path))
        if file is None:
            raise UsageProblem(
                f"{path}: not a segment file; the name must be 20 digits and "
                ".log, .index, .timeindex, .txnindex or .snapshot"
            )
        yield path, file
    if not any_path:
        raise UsageProblem("nothing to dump: name files or directories, e.g. odradek log dump data/orders-0")


def _files_in(path: str) -> Iterable[tuple[str, SegmentFile]]:
    try:
        directories = find_partitions(path)
    except NotALog as error:
        raise UsageProblem(str(error)) from None
    for directory in directories:
        for name in sorted(os.listdir(directory)):
            file = parse_segment_filename(name)
            if file is not None and not file.state:
                yield os.path.join(directory, name), file


def _decoder(
    offsets: bool, transaction_log: bool, key_class: str | None, value_class: str | None
) -> RecordDecoder | None:
    if offsets or transaction_log:
        # Imported here, because reading the protocol's schemas takes time.
        from odradek.cli.log import coordinator_records  # noqa: PLC0415

        if offsets:
            return coordinator_records.decode_group_record
        return coordinator_records.decode_transaction_record
    if key_class is None and value_class is None:
        return None
    return plain_decoder(_named(key_class), _named(value_class))


def _named(class_name: str | None) -> BytesDecoder:
    try:
        return bytes_decoder(class_name or DEFAULT_CLASS)
    except KeyError:
        known = ", ".join(BYTES_DECODERS)
        raise UsageProblem(
            f"{class_name}: Java classes are not loaded here; known decoders are {known}"
        ) from None
