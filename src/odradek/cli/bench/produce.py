"""`odradek bench produce`: measures producer throughput and acknowledgement latency."""

from __future__ import annotations

import sys
from typing import Any

import click

from odradek.cli.bench import flags
from odradek.cli.bench.figures import columns, percentiles, rates
from odradek.cli.bench.interruption import EXIT_CODE, interruptible
from odradek.cli.bench.run_topic import run_topic
from odradek.cli.bench.sending import SendResult, send_records
from odradek.cli.connecting import Failed, friendly_errors
from odradek.cli.output import print_rows

DEFAULT_RECORDS = 1_000_000


@click.command("produce")
@flags.with_options(
    flags.topic_option,
    flags.records_option(DEFAULT_RECORDS, "How many to send."),
    flags.record_size_option,
    flags.throughput_option,
    flags.acks_option,
    flags.compression_option,
    flags.batch_size_option,
    flags.linger_option,
    flags.partitions_option,
    flags.table_option,
    flags.interval_option,
    *flags.cluster_options,
)
def command(
    topic: str | None,
    records: int,
    record_size: int,
    throughput: float,
    acks: str,
    compression: str,
    batch_size: int | None,
    linger_ms: float | None,
    partitions: int | None,
    by_table: bool,
    interval_ms: int,
    settings: tuple[str, ...],
    bootstrap: str,
    output: str | None,
) -> None:
    """Send random records and report the throughput. Ctrl-C stops it and prints the results so far.

    \b
    odradek bench produce --records 5000000 --batch-size 262144 --compression lz4
    odradek bench produce --topic orders --record-size 1000 --throughput 10000 --acks 1
    """
    flags.check_tables(by_table)
    chosen = flags.producer_settings(
        bootstrap,
        settings,
        acks=acks,
        compression=compression,
        batch_size=batch_size,
        linger_ms=linger_ms,
    )
    sending = flags.Sending(records, record_size, throughput, by_table, chosen)
    with friendly_errors(), interruptible() as interruption, run_topic(bootstrap, topic, partitions) as made:
        sent = send_records(sending, made.name, interruption, interval_ms)
    row = _row(sent, record_size)
    print_rows(output, [columns(row)], [_line(row)], objects=[row])
    if sent.failed:
        reason = f": {sent.first_error}" if sent.first_error is not None else ""
        raise Failed(f"{sent.failed} of {sent.failed + sent.delivered} records were not acknowledged{reason}")
    if interruption.is_wanted:
        sys.exit(EXIT_CODE)


def _row(sent: SendResult, record_size: int) -> dict[str, Any]:
    return {
        **rates(sent.delivered, sent.delivered * record_size, sent.elapsed_s),
        **percentiles(sent.latencies),
    }


def _line(row: dict[str, Any]) -> str:
    """In the format of kafka-producer-perf-test.sh, with fractions of milliseconds."""
    return (
        f"{row['records']} records sent, {row['records_per_sec']:.1f} records/sec "
        f"({row['mb_per_sec']:.2f} MB/sec), {row['avg_ms']:.2f} ms avg latency, "
        f"{row['max_ms']:.2f} ms max latency, {row['p50_ms']:.2f} ms 50th, {row['p95_ms']:.2f} ms 95th, "
        f"{row['p99_ms']:.2f} ms 99th, {row['p999_ms']:.2f} ms 99.9th."
    )
