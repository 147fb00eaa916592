"""Measures one record at a time: until it is acknowledged, or until a polling consumer returns it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from odradek.cli.bench.figures import short_percentiles
from odradek.cli.bench.flags import Sending
from odradek.cli.bench.interruption import Interruption
from odradek.cli.bench.latencies import Latencies
from odradek.cli.bench.live import LiveProgress, Meter, live_progress
from odradek.cli.bench.payloads import make_payloads
from odradek.cli.bench.run_topic import RunTopic
from odradek.cli.bench.sending import paced
from odradek.cli.connecting import CLIENT_ID, Failed
from odradek.client.consumer.consumer import Consumer
from odradek.client.producer.producer import Producer
from odradek.common.ids import TopicPartition

PARTITION = 0
WARM_UP = 20
"""Records that are not timed, so that connections are open and caches are filled."""
PATIENCE_S = 30.0

Send = Callable[[bytes], None]


def time_sends(sending: Sending, topic: RunTopic, interruption: Interruption, interval_ms: int) -> Latencies:
    """From `send` to its acknowledgement."""
    with Producer(**sending.settings) as producer:

        def send(payload: bytes) -> None:
            producer.send(topic.name, payload, partition=PARTITION).result(PATIENCE_S)

        return _time(send, "send", sending, interruption, interval_ms)


def time_end_to_end(
    sending: Sending, topic: RunTopic, interruption: Interruption, interval_ms: int
) -> Latencies:
    """From `send` until a waiting consumer's `poll` returns the record."""
    place = TopicPartition(topic.name, PARTITION)
    reading = {"bootstrap_servers": sending.settings["bootstrap_servers"], "client_id": CLIENT_ID}
    with Producer(**sending.settings) as producer, Consumer(**reading) as consumer:
        consumer.assign([place])
        consumer.seek_to_end([place])
        consumer.position(place)

        def send(payload: bytes) -> None:
            future = producer.send(topic.name, payload, partition=PARTITION)
            _wait_for(consumer, payload, future)

        return _time(send, "end to end", sending, interruption, interval_ms)


def _wait_for(consumer: Consumer[bytes, bytes], payload: bytes, future: Any) -> None:
    """Wait for the record with this value; other producers may write to the topic too."""
    deadline_s = time.monotonic() + PATIENCE_S
    while all(record.value != payload for record in consumer.poll(0.5)):
        if future.done():
            future.result(0)
        if time.monotonic() > deadline_s:
            raise Failed(f"a record was acknowledged but not read within {PATIENCE_S:g} seconds")


def _time(
    send: Send, title: str, sending: Sending, interruption: Interruption, interval_ms: int
) -> Latencies:
    latencies = Latencies()
    payloads = make_payloads(sending.record_size, sending.records)
    for number in range(WARM_UP):
        if not interruption.is_wanted:
            send(payloads[number % len(payloads)])

    def look() -> LiveProgress:
        return LiveProgress(latencies.count, short_percentiles(latencies))

    meter = Meter(sending.records, sending.record_size, time.monotonic())
    with live_progress(title, meter, interval_ms, look):
        for number in paced(sending.records, 1, sending.throughput, interruption):
            begin_ns = time.perf_counter_ns()
            send(payloads[number % len(payloads)])
            latencies.add(time.perf_counter_ns() - begin_ns)
    return latencies
