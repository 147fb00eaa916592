"""`odradek bench latency`: measures send latency and end-to-end latency."""

from __future__ import annotations

import sys
from typing import Any

import click

from odradek.cli.bench import flags
from odradek.cli.bench.figures import bars, columns, percentiles
from odradek.cli.bench.interruption import EXIT_CODE, interruptible
from odradek.cli.bench.latencies import Latencies
from odradek.cli.bench.round_trips import time_end_to_end, time_sends
from odradek.cli.bench.run_topic import run_topic
from odradek.cli.connecting import friendly_errors
from odradek.cli.output import print_rows

DEFAULT_RECORDS = 2000


@click.command("latency")
@flags.with_options(
    flags.topic_option,
    flags.records_option(DEFAULT_RECORDS, "Records for each of the two measurements."),
    flags.record_size_option,
    flags.throughput_option,
    flags.acks_option,
    flags.compression_option,
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
    interval_ms: int,
    settings: tuple[str, ...],
    bootstrap: str,
    output: str | None,
) -> None:
    """Send one record at a time and report the latencies. Ctrl-C stops it and prints the results so far.

    First until a record is acknowledged ("send"), then until a polling consumer returns it ("end to end").

    \b
    odradek bench latency
    odradek bench latency --records 10000 --acks 1 --throughput 500
    """
    chosen = flags.producer_settings(
        bootstrap, settings, acks=acks, compression=compression, batch_size=None, linger_ms=0
    )
    sending = flags.Sending(records, record_size, throughput, False, chosen)
    times: dict[str, Latencies] = {}
    with friendly_errors(), interruptible() as interruption, run_topic(bootstrap, topic, None) as made:
        times["send"] = time_sends(sending, made, interruption, interval_ms)
        times["end to end"] = time_end_to_end(sending, made, interruption, interval_ms)
    rows = [_row(what, latencies) for what, latencies in times.items()]
    objects = [{**row, "histogram": _objects(times[row["what"]])} for row in rows]
    lines = [line for what, latencies in times.items() for line in _lines(what, latencies)]
    print_rows(output, [columns(row) for row in rows], lines, objects=objects)
    if output != "json":
        for what, latencies in times.items():
            click.echo("\n".join(["", what, *bars(latencies)]))
    if interruption.is_wanted:
        sys.exit(EXIT_CODE)


def _row(what: str, latencies: Latencies) -> dict[str, Any]:
    return {"what": what, "records": latencies.count, **percentiles(latencies)}


def _objects(latencies: Latencies) -> list[dict[str, Any]]:
    return [{"from_ms": begin, "to_ms": end, "count": count} for begin, end, count in latencies.histogram()]


def _lines(what: str, latencies: Latencies) -> list[str]:
    """In the format of Kafka's EndToEndLatency."""
    p50, p99, p999 = (latencies.percentile_ms(percent) for percent in (50, 99, 99.9))
    return [
        f"{what}: {latencies.count} records",
        f"Avg latency: {latencies.average_ms:.4f} ms",
        f"Percentiles: 50th = {p50:.3f}, 99th = {p99:.3f}, 99.9th = {p999:.3f}, max = {latencies.max_ms:.3f}",
    ]
