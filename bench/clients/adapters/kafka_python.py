"""kafka-python."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from clients.task import (
    LINGER_MS,
    RECORDS_PER_POLL,
    TIMEOUT_SECONDS,
    WARM_UP_PART,
    Measurement,
    Stopwatch,
    Task,
)

TIMEOUT_MS = int(TIMEOUT_SECONDS * 1000)


def producer(task: Task, linger_ms: int) -> Any:
    return KafkaProducer(
        bootstrap_servers=task.bootstrap,
        acks=1,
        enable_idempotence=False,
        linger_ms=linger_ms,
        batch_size=task.batch_bytes,
    )


def consumer(task: Task) -> Any:
    reader = KafkaConsumer(
        bootstrap_servers=task.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    reader.assign([TopicPartition(task.topic, 0)])
    return reader


def produce(task: Task) -> Measurement:
    delivered = 0

    def on_delivery(metadata: object) -> None:
        nonlocal delivered
        delivered += 1

    values = task.values()
    sender = producer(task, LINGER_MS)
    for value in values[: len(values) // WARM_UP_PART]:
        sender.send(task.topic, value)
    sender.flush()
    with Stopwatch() as watch:
        for value in values:
            sender.send(task.topic, value).add_callback(on_delivery)
        sender.flush()
    sender.close()
    assert delivered == task.records
    return watch.measurement(task.records)


def poll(reader: Any, most: int = RECORDS_PER_POLL) -> list[Any]:
    fetched = reader.poll(timeout_ms=TIMEOUT_MS, max_records=most)
    if not fetched:
        raise TimeoutError(f"no records within {TIMEOUT_SECONDS} s")
    return [record for records in fetched.values() for record in records]


def consume(task: Task) -> Measurement:
    reader = consumer(task)
    first = len(poll(reader))
    count = total_bytes = 0
    with Stopwatch() as watch:
        while first + count < task.records:
            for record in poll(reader):
                total_bytes += len(record.value)
                count += 1
    reader.close()
    assert total_bytes == count * task.record_bytes
    return watch.measurement(count)


def produce_table(task: Task) -> Measurement:
    table = pa.table({"value": pa.array(task.values()[: task.rows], pa.binary())})
    sender = producer(task, LINGER_MS)
    count = 0
    with Stopwatch() as watch:
        while count < task.records:
            for value in table["value"].to_pylist():
                sender.send(task.topic, value)
            count += task.rows
        sender.flush()
    sender.close()
    return watch.measurement(count)


def consume_table(task: Task) -> Measurement:
    reader = consumer(task)
    first = len(poll(reader, task.rows))
    count = 0
    with Stopwatch() as watch:
        while first + count < task.records:
            records = poll(reader, task.rows)
            table = pa.table(
                {
                    "offset": pa.array([record.offset for record in records], pa.int64()),
                    "timestamp": pa.array([record.timestamp for record in records], pa.int64()),
                    "key": pa.array([record.key for record in records], pa.binary()),
                    "value": pa.array([record.value for record in records], pa.binary()),
                }
            )
            count += table.num_rows
    reader.close()
    return watch.measurement(count)


def round_trips(task: Task) -> Measurement:
    measured = Measurement(task.records)
    sender = producer(task, 0)
    for value in task.values():
        started = time.perf_counter()
        sender.send(task.topic, value).get(TIMEOUT_SECONDS)
        measured.milliseconds.append((time.perf_counter() - started) * 1000)
    sender.close()
    return measured


def end_to_end(task: Task) -> Measurement:
    measured = Measurement(task.records)
    sender, reader = producer(task, 0), consumer(task)
    for value in task.values():
        started = time.perf_counter()
        sender.send(task.topic, value)
        poll(reader)
        measured.milliseconds.append((time.perf_counter() - started) * 1000)
    sender.close()
    reader.close()
    return measured
