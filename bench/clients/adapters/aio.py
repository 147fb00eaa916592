"""aiokafka, read by `getmany`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

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


@asynccontextmanager
async def producing(task: Task, linger_ms: int) -> AsyncIterator[Any]:
    sender = AIOKafkaProducer(
        bootstrap_servers=task.bootstrap, acks=1, linger_ms=linger_ms, max_batch_size=task.batch_bytes
    )
    await sender.start()
    try:
        yield sender
    finally:
        await sender.stop()


@asynccontextmanager
async def consuming(task: Task) -> AsyncIterator[Any]:
    reader = AIOKafkaConsumer(
        bootstrap_servers=task.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await reader.start()
    try:
        reader.assign([TopicPartition(task.topic, 0)])
        yield reader
    finally:
        await reader.stop()


async def _produce(task: Task) -> Measurement:
    delivered = 0

    def on_delivery(future: asyncio.Future[Any]) -> None:
        nonlocal delivered
        future.result()
        delivered += 1

    values = task.values()
    async with producing(task, LINGER_MS) as sender:
        for value in values[: len(values) // WARM_UP_PART]:
            await sender.send(task.topic, value)
        await sender.flush()
        with Stopwatch() as watch:
            for value in values:
                (await sender.send(task.topic, value)).add_done_callback(on_delivery)
            await sender.flush()
            while delivered < task.records:  # callbacks run in the loop's next turn
                await asyncio.sleep(0)
    return watch.measurement(task.records)


async def poll(reader: Any, most: int = RECORDS_PER_POLL) -> list[Any]:
    fetched = await reader.getmany(timeout_ms=TIMEOUT_MS, max_records=most)
    if not fetched:
        raise TimeoutError(f"no records within {TIMEOUT_SECONDS} s")
    return [record for records in fetched.values() for record in records]


async def _consume(task: Task) -> Measurement:
    async with consuming(task) as reader:
        first = len(await poll(reader))
        count = total_bytes = 0
        with Stopwatch() as watch:
            while first + count < task.records:
                for record in await poll(reader):
                    total_bytes += len(record.value)
                    count += 1
    assert total_bytes == count * task.record_bytes
    return watch.measurement(count)


async def _produce_table(task: Task) -> Measurement:
    table = pa.table({"value": pa.array(task.values()[: task.rows], pa.binary())})
    count = 0
    async with producing(task, LINGER_MS) as sender:
        with Stopwatch() as watch:
            while count < task.records:
                for value in table["value"].to_pylist():
                    await sender.send(task.topic, value)
                count += task.rows
            await sender.flush()
    return watch.measurement(count)


async def _consume_table(task: Task) -> Measurement:
    async with consuming(task) as reader:
        first = len(await poll(reader, task.rows))
        count = 0
        with Stopwatch() as watch:
            while first + count < task.records:
                records = await poll(reader, task.rows)
                table = pa.table(
                    {
                        "offset": pa.array([record.offset for record in records], pa.int64()),
                        "timestamp": pa.array([record.timestamp for record in records], pa.int64()),
                        "key": pa.array([record.key for record in records], pa.binary()),
                        "value": pa.array([record.value for record in records], pa.binary()),
                    }
                )
                count += table.num_rows
    return watch.measurement(count)


async def _round_trips(task: Task) -> Measurement:
    measured = Measurement(task.records)
    async with producing(task, 0) as sender:
        for value in task.values():
            started = time.perf_counter()
            await sender.send_and_wait(task.topic, value)
            measured.milliseconds.append((time.perf_counter() - started) * 1000)
    return measured


async def _end_to_end(task: Task) -> Measurement:
    measured = Measurement(task.records)
    async with producing(task, 0) as sender, consuming(task) as reader:
        for value in task.values():
            started = time.perf_counter()
            await sender.send(task.topic, value)
            await poll(reader)
            measured.milliseconds.append((time.perf_counter() - started) * 1000)
    return measured


def _in_a_loop(run: Callable[[Task], Coroutine[Any, Any, Measurement]]) -> Callable[[Task], Measurement]:
    return lambda task: asyncio.run(run(task))


produce, consume = _in_a_loop(_produce), _in_a_loop(_consume)
produce_table, consume_table = _in_a_loop(_produce_table), _in_a_loop(_consume_table)
round_trips, end_to_end = _in_a_loop(_round_trips), _in_a_loop(_end_to_end)
