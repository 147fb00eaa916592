"""odradek's own clients."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa

from clients.task import (
    LINGER_MS,
    RECORDS_PER_POLL,
    TIMEOUT_SECONDS,
    WARM_UP_PART,
    Measurement,
    Stopwatch,
    Task,
)
from odradek import Producer, TopicPartition

DEFAULT_FETCH_BYTES, TABLE_FETCH_BYTES, ROW_BYTES = 1024 * 1024, 8 * 1024 * 1024, 110


def producer(task: Task, linger_ms: int) -> Any:
    return Producer(
        bootstrap_servers=task.bootstrap, acks=1, linger_ms=linger_ms, batch_size=task.batch_bytes
    )


def consumer(task: Task, fetch_bytes: int = DEFAULT_FETCH_BYTES) -> Any:
    from odradek import Consumer

    reader: Any = Consumer(
        bootstrap_servers=task.bootstrap,
        auto_offset_reset="earliest",
        max_poll_records=RECORDS_PER_POLL,
        # For tables as much as one takes, or more; the others read no faster with more than their 1 MiB.
        max_partition_fetch_bytes=fetch_bytes,
    )
    reader.assign([TopicPartition(task.topic, 0)])
    return reader


def produce(task: Task) -> Measurement:
    delivered = 0

    def on_delivery(error: BaseException | None, metadata: object) -> None:
        nonlocal delivered
        assert error is None
        delivered += 1

    values = task.values()
    with producer(task, LINGER_MS) as sender:
        send, topic = sender.send, task.topic
        for value in values[: len(values) // WARM_UP_PART]:
            send(topic, value)
        sender.flush()
        with Stopwatch() as watch:
            for value in values:
                send(topic, value, on_delivery=on_delivery)
            sender.flush()
    assert delivered == task.records
    return watch.measurement(task.records)


def consume(task: Task) -> Measurement:
    with consumer(task) as reader:
        first = len(reader.poll(TIMEOUT_SECONDS))
        count = total_bytes = 0
        with Stopwatch() as watch:
            while first + count < task.records:
                for record in reader.poll(TIMEOUT_SECONDS):
                    total_bytes += len(record.value)
                    count += 1
    assert total_bytes == count * task.record_bytes
    return watch.measurement(count)


def produce_table(task: Task) -> Measurement:
    table = pa.table({"value": pa.array(task.values()[: task.rows], pa.binary())})
    count = 0
    with producer(task, LINGER_MS) as sender:
        sender.send_table(task.topic, table).result(TIMEOUT_SECONDS)
        with Stopwatch() as watch:
            while count < task.records:
                sender.send_table(task.topic, table)
                count += task.rows
            sender.flush()
    return watch.measurement(count)


def consume_table(task: Task) -> Measurement:
    with consumer(task, max(TABLE_FETCH_BYTES, task.rows * ROW_BYTES)) as reader:
        first = reader.poll_table(TIMEOUT_SECONDS, max_records=task.rows).num_rows
        count = 0
        with Stopwatch() as watch:
            while first + count < task.records:
                count += reader.poll_table(TIMEOUT_SECONDS, max_records=task.rows).num_rows
    return watch.measurement(count)


def consume_long(task: Task) -> Measurement:
    partition = TopicPartition(task.topic, 0)
    with consumer(task) as reader:
        end = reader.end_offsets([partition])[partition]
        count = 0
        with Stopwatch() as watch:
            while count < task.records:
                count += len(reader.poll(TIMEOUT_SECONDS))
                if reader.position(partition) == end:
                    reader.seek(partition, 0)
    return watch.measurement(count)


def round_trips(task: Task) -> Measurement:
    measured = Measurement(task.records)
    with producer(task, 0) as sender:
        for value in task.values():
            started = time.perf_counter()
            sender.send(task.topic, value).result(TIMEOUT_SECONDS)
            measured.milliseconds.append((time.perf_counter() - started) * 1000)
    return measured


def end_to_end(task: Task) -> Measurement:
    measured = Measurement(task.records)
    with producer(task, 0) as sender, consumer(task) as reader:
        for value in task.values():
            started = time.perf_counter()
            sender.send(task.topic, value)
            while not reader.poll(TIMEOUT_SECONDS):
                pass
            measured.milliseconds.append((time.perf_counter() - started) * 1000)
    return measured
