"""Sends the records of a run with a producer and measures the acknowledgement latencies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from odradek.cli.bench.figures import short_percentiles
from odradek.cli.bench.flags import Sending
from odradek.cli.bench.interruption import Interruption
from odradek.cli.bench.latencies import Latencies
from odradek.cli.bench.live import LiveProgress, Meter, live_progress
from odradek.cli.bench.pace import Pace
from odradek.cli.bench.payloads import make_payloads
from odradek.client.producer.batches.batch import DeliveryFuture
from odradek.client.producer.producer import Producer, RecordMetadata

if TYPE_CHECKING:
    import pyarrow as pa

ALL_TIMED_UP_TO = 500_000
TIMED_OF_MORE = 10
"""A long run times every tenth record, to reduce the overhead of measuring."""
ROWS_PER_TABLE = 10_000
INTERRUPTED_FLUSH_S = 5.0
LONGEST_SLEEP_S = 0.1


class SendResult(NamedTuple):
    """The result of a run."""

    delivered: int
    failed: int
    elapsed_s: float
    latencies: Latencies
    first_error: BaseException | None


class Watch:
    """Latencies of acknowledgements. The producer's thread calls `note`."""

    def __init__(self) -> None:
        self.latencies = Latencies()
        self.first_error: BaseException | None = None

    def note(self, sent_ns: int, error: BaseException | None, _: RecordMetadata | None = None) -> None:
        """Record the result of one record, or of some rows of a table, sent at `sent_ns`."""
        if error is None:
            self.latencies.add(time.perf_counter_ns() - sent_ns)
        else:
            self.first_error = self.first_error or error


def send_records(sending: Sending, topic: str, interruption: Interruption, interval_ms: int) -> SendResult:
    """Send all records and wait for their acknowledgements, or for an interruption."""
    watch = Watch()
    producer = Producer(**sending.settings)
    try:
        # The first metadata request and connection are not measured.
        producer.partitions_for(topic)
        start_s = time.monotonic()
        send = _send_tables if sending.by_table else _send_one_by_one

        def look() -> LiveProgress:
            return LiveProgress(producer.statistics().records_delivered, short_percentiles(watch.latencies))

        meter = Meter(sending.records, sending.record_size, start_s)
        with live_progress("produce", meter, interval_ms, look):
            send(producer, sending, topic, watch, interruption)
            producer.flush(INTERRUPTED_FLUSH_S if interruption.is_wanted else None)
        elapsed_s = time.monotonic() - start_s
        statistics = producer.statistics()
    finally:
        # Do not wait for the remaining records.
        producer.close(0)
    return SendResult(
        statistics.records_delivered,
        statistics.records_failed,
        elapsed_s,
        watch.latencies,
        watch.first_error,
    )


def _send_one_by_one(
    producer: Producer[bytes, bytes], sending: Sending, topic: str, watch: Watch, interruption: Interruption
) -> None:
    payloads = make_payloads(sending.record_size, sending.records)
    timed = 1 if sending.records <= ALL_TIMED_UP_TO else TIMED_OF_MORE
    now_ns, count = time.perf_counter_ns, len(payloads)
    for number in paced(sending.records, 1, sending.throughput, interruption):
        payload = payloads[number % count]
        if number % timed == 0:
            producer.send(topic, payload, on_delivery=partial(watch.note, now_ns()))
        else:
            producer.send(topic, payload)


def _send_tables(
    producer: Producer[bytes, bytes], sending: Sending, topic: str, watch: Watch, interruption: Interruption
) -> None:
    table = _make_table(sending)
    for number in paced(sending.records, table.num_rows, sending.throughput, interruption):
        sent_ns = time.perf_counter_ns()
        part = table.slice(0, sending.records - number)
        for future in producer.send_table(topic, part).futures():
            future.add_done_callback(partial(_note_rows, watch, sent_ns))


def _note_rows(watch: Watch, sent_ns: int, done: DeliveryFuture) -> None:
    watch.note(sent_ns, done.exception(0))


def _make_table(sending: Sending) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415

    values = make_payloads(sending.record_size, min(sending.records, ROWS_PER_TABLE))
    return pa.table({"value": values})


def paced(records: int, step: int, throughput: float, interruption: Interruption) -> Iterator[int]:
    """The number of each record, or of the first of each table, when it is time to send it."""
    pace, is_paced = Pace(throughput, time.monotonic()), throughput > 0
    for number in range(0, records, step):
        # Without a rate the clock is not read: that would cost as much as sending.
        while is_paced and (wait_s := pace.wait_s(number, time.monotonic())) and not interruption.is_wanted:
            time.sleep(min(wait_s, LONGEST_SLEEP_S))
        if interruption.is_wanted:
            return
        yield number
