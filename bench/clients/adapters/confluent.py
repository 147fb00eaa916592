"""confluent-kafka (librdkafka) at its best settings: without fetch.queue.backoff.ms it reads at a fifth."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition

from clients.task import (
    LARGE_BATCH_BYTES,
    LINGER_MS,
    RECORDS_PER_POLL,
    TIMEOUT_SECONDS,
    WARM_UP_PART,
    Measurement,
    Stopwatch,
    Task,
)

RECORDS_PER_CALLBACK_POLL = 1_000
OWN_BATCH_BYTES = 1_000_000
"""librdkafka's default, and its best."""


def producer(task: Task, linger_ms: int) -> Any:
    return Producer(
        {
            "bootstrap.servers": task.bootstrap,
            "broker.address.family": "v4",
            "socket.nagle.disable": True,
            "acks": 1,
            "linger.ms": linger_ms,
            "batch.num.messages": 100_000,
            "batch.size": OWN_BATCH_BYTES if task.batch_bytes == LARGE_BATCH_BYTES else task.batch_bytes,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_048_576,
        }
    )


def consumer(task: Task) -> Any:
    reader = Consumer(
        {
            "bootstrap.servers": task.bootstrap,
            "broker.address.family": "v4",
            "socket.nagle.disable": True,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 5,
        }
    )
    reader.assign([TopicPartition(task.topic, 0, OFFSET_BEGINNING)])
    return reader


class Deliveries:
    """Counts acknowledgements, and sends on while librdkafka's queue is full."""

    def __init__(self, sender: Any, topic: str) -> None:
        self.sender = sender
        self.topic = topic
        self.count = 0

    def on_delivery(self, error: object, message: Message) -> None:
        assert error is None
        self.count += 1

    def send_all(self, values: list[bytes]) -> None:
        send, poll, topic, on_delivery = self.sender.produce, self.sender.poll, self.topic, self.on_delivery
        for start in range(0, len(values), RECORDS_PER_CALLBACK_POLL):
            for value in values[start : start + RECORDS_PER_CALLBACK_POLL]:
                try:
                    send(topic, value, on_delivery=on_delivery)
                except BufferError:
                    poll(TIMEOUT_SECONDS)
                    send(topic, value, on_delivery=on_delivery)
            poll(0)


def produce(task: Task) -> Measurement:
    values = task.values()
    sender = producer(task, LINGER_MS)
    deliveries = Deliveries(sender, task.topic)
    deliveries.send_all(values[: len(values) // WARM_UP_PART])
    sender.flush()
    before = deliveries.count
    with Stopwatch() as watch:
        deliveries.send_all(values)
        sender.flush()
    assert deliveries.count - before == task.records
    return watch.measurement(task.records)


def consume(task: Task) -> Measurement:
    reader = consumer(task)
    first = len(take(reader, task, 0))
    count = total_bytes = 0
    with Stopwatch() as watch:
        while first + count < task.records:
            for message in take(reader, task, first + count):
                total_bytes += len(message.value() or b"")
                count += 1
    reader.close()
    assert total_bytes == count * task.record_bytes
    return watch.measurement(count)


def take(reader: Any, task: Task, count: int, most: int = RECORDS_PER_POLL) -> list[Message]:
    """One call; it waits until it has all that it asked for, so the last one asks for less."""
    messages: list[Message] = reader.consume(min(most, task.records - count), timeout=TIMEOUT_SECONDS)
    if not messages:
        raise TimeoutError(f"no records within {TIMEOUT_SECONDS} s")
    return messages


def produce_table(task: Task) -> Measurement:
    table = pa.table({"value": pa.array(task.values()[: task.rows], pa.binary())})
    sender = producer(task, LINGER_MS)
    deliveries = Deliveries(sender, task.topic)
    deliveries.send_all(table["value"].to_pylist())
    sender.flush()
    count = 0
    with Stopwatch() as watch:
        while count < task.records:
            deliveries.send_all(table["value"].to_pylist())
            count += task.rows
        sender.flush()
    return watch.measurement(count)


def consume_table(task: Task) -> Measurement:
    reader = consumer(task)
    first = len(take(reader, task, 0, task.rows))
    count = 0
    with Stopwatch() as watch:
        while first + count < task.records:
            messages = take(reader, task, first + count, task.rows)
            table = pa.table(
                {
                    "offset": pa.array([message.offset() for message in messages], pa.int64()),
                    "timestamp": pa.array([message.timestamp()[1] for message in messages], pa.int64()),
                    "key": pa.array([message.key() for message in messages], pa.binary()),
                    "value": pa.array([message.value() for message in messages], pa.binary()),
                }
            )
            count += table.num_rows
    reader.close()
    return watch.measurement(count)


def consume_long(task: Task) -> Measurement:
    partition = TopicPartition(task.topic, 0)
    reader = consumer(task)
    _, end = reader.get_watermark_offsets(partition)
    count = 0
    with Stopwatch() as watch:
        while count < task.records:
            part_left = end - count % end
            count += len(take(reader, task, count, min(part_left, RECORDS_PER_POLL)))
            if count % end == 0:
                reader.seek(TopicPartition(task.topic, 0, 0))
    reader.close()
    return watch.measurement(count)


def round_trips(task: Task) -> Measurement:
    measured = Measurement(task.records)
    sender = producer(task, 0)
    deliveries = Deliveries(sender, task.topic)
    for number, value in enumerate(task.values()):
        started = time.perf_counter()
        sender.produce(task.topic, value, on_delivery=deliveries.on_delivery)
        while deliveries.count <= number:
            sender.poll(TIMEOUT_SECONDS)
        measured.milliseconds.append((time.perf_counter() - started) * 1000)
    return measured


def end_to_end(task: Task) -> Measurement:
    measured = Measurement(task.records)
    sender, reader = producer(task, 0), consumer(task)
    for value in task.values():
        started = time.perf_counter()
        sender.produce(task.topic, value)
        while not reader.consume(1, timeout=TIMEOUT_SECONDS):
            pass
        measured.milliseconds.append((time.perf_counter() - started) * 1000)
    reader.close()
    return measured
