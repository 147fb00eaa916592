"""`odradek bench consume`: measures consumer throughput and the time to the first record."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from odradek.cli.bench import flags
from odradek.cli.bench.figures import columns, rates
from odradek.cli.bench.interruption import EXIT_CODE, interruptible
from odradek.cli.bench.live import MEGABYTE
from odradek.cli.bench.reading import ReadOptions, ReadResult, read_records
from odradek.cli.bench.run_topic import run_topic
from odradek.cli.bench.sending import send_records
from odradek.cli.connecting import Failed, client_settings, friendly_errors
from odradek.cli.groups.group_names import complete_group
from odradek.cli.output import print_rows

DEFAULT_MADE_RECORDS = 1_000_000
DEFAULT_TIMEOUT_MS = 10_000
FILLING_BATCH_BYTES = 262_144


@click.command("consume")
@flags.with_options(
    flags.topic_option,
    flags.records_option(None, "Records to read; by default the whole topic, or 1000000 without --topic."),
    flags.record_size_option,
    flags.compression_option,
    flags.partitions_option,
    click.option(
        "--group",
        shell_complete=complete_group,
        help="ReadResult as a member of this group; without a group by default.",
    ),
    click.option(
        "--timeout",
        "--timeout-ms",
        "timeout_ms",
        type=click.IntRange(min=1),
        default=DEFAULT_TIMEOUT_MS,
        show_default=True,
        help="Stop when no record arrives for this many milliseconds.",
    ),
    flags.table_option,
    flags.interval_option,
    *flags.cluster_options,
)
def command(
    topic: str | None,
    records: int | None,
    record_size: int,
    compression: str,
    partitions: int | None,
    group: str | None,
    timeout_ms: int,
    by_table: bool,
    interval_ms: int,
    settings: tuple[str, ...],
    bootstrap: str,
    output: str | None,
) -> None:
    """ReadResult a topic and report the throughput. Ctrl-C stops it and prints the results so far.

    Without --topic, a topic is created and filled first, with --record-size and --compression.

    \b
    odradek bench consume --topic orders --group bench
    odradek bench consume --records 5000000 --partitions 6 --table
    """
    flags.check_tables(by_table)
    chosen = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest", **client_settings(settings)}
    wanted = ReadOptions(records, group, by_table, timeout_ms, chosen)
    filling = flags.Sending(
        records or DEFAULT_MADE_RECORDS,
        record_size,
        -1,
        False,
        flags.producer_settings(
            bootstrap,
            (),
            acks="1",
            compression=compression,
            batch_size=FILLING_BATCH_BYTES,
            linger_ms=None,
        ),
    )
    with friendly_errors(), interruptible() as interruption, run_topic(bootstrap, topic, partitions) as made:
        if topic is None:
            send_records(filling, made.name, interruption, interval_ms)
        read = read_records(wanted, made, interruption, interval_ms, record_size)
    row = _row(read)
    print_rows(output, [columns(row)], [_HEADER, _line(read)], objects=[row])
    if interruption.is_wanted:
        sys.exit(EXIT_CODE)
    if read.records < read.wanted:
        raise Failed(
            f"{read.records} of {read.wanted} records were read: no more came within {timeout_ms} ms"
        )


def _row(read: ReadResult) -> dict[str, Any]:
    first_ms = None if read.first_record_s is None else round(read.first_record_s * 1000, 3)
    return {**rates(read.records, read.value_bytes, read.elapsed_s), "first_record_ms": first_ms}


_HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, first.record.ms"
)


def _line(read: ReadResult) -> str:
    """The columns of kafka-consumer-perf-test.sh up to the fetcher columns."""
    row = _row(read)
    begin, end = (_moment(at_ms) for at_ms in (read.started_ms, read.started_ms + read.elapsed_s * 1000))
    mb = read.value_bytes / MEGABYTE
    first_ms = "" if row["first_record_ms"] is None else f"{row['first_record_ms']:.1f}"
    return (
        f"{begin}, {end}, {mb:.4f}, {row['mb_per_sec']:.4f}, {read.records}, "
        f"{row['records_per_sec']:.4f}, {first_ms}"
    )


def _moment(at_ms: float) -> str:
    """As Kafka's tool prints times: 2026-01-31 12:00:00:123."""
    at_s, part_ms = divmod(round(at_ms), 1000)
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(at_s))}:{part_ms:03}"
