"""Reads what a plan says and prints it, until it is enough or somebody interrupts."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from odradek.cli.connecting import Failed
from odradek.cli.consume.fetching import Fetched, PartitionsReader
from odradek.cli.consume.record_format import Format, Shown
from odradek.cli.consume.start_offsets import Bounds, Span, Start, first_offset
from odradek.cli.topic_names import no_such_topic
from odradek.client.admin.admin import AsyncAdmin
from odradek.client.admin.base import require
from odradek.client.admin.offsets import IsolationLevel, OffsetSpec
from odradek.common.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read, and when it is enough."""

    bootstrap: str
    topic: str
    partitions: tuple[int, ...]
    span: Span
    max_records: int | None
    exits_at_end: bool
    timeout_ms: int | None
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    settings: Mapping[str, Any] = field(default_factory=dict)


async def read_until_interrupted(plan: Plan, show: Format) -> None:
    """Ctrl-C is how one ends to look at what comes: no error, and nothing of what was read gets lost."""
    reading = asyncio.ensure_future(_read(plan, show, sys.stdout.buffer))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, reading.cancel)
    try:
        await reading
    except asyncio.CancelledError:
        sys.stdout.buffer.flush()


async def _read(plan: Plan, show: Format, out: BinaryIO) -> None:
    if plan.max_records == 0:
        return
    async with AsyncAdmin(bootstrap_servers=plan.bootstrap, **plan.settings) as admin:
        await admin.connect()
        positions, stops = await _places(admin, plan)
        reader = PartitionsReader(admin, positions, plan.isolation_level)
        async with aclosing(reader.read()) as arriving:
            await _print(plan, show, out, arriving, positions, stops)


async def _print(
    plan: Plan,
    show: Format,
    out: BinaryIO,
    arriving: AsyncIterator[Fetched],
    positions: dict[TopicPartition, int],
    stops: Mapping[TopicPartition, int],
) -> None:
    loop = asyncio.get_running_loop()
    left, last_record_s = plan.max_records, loop.time()
    async for fetched in arriving:
        stop = stops.get(fetched.partition)
        shown = [one for one in _records(fetched) if stop is None or one.offset < stop][:left]
        if shown:
            out.write(b"".join(map(show, shown)))
            out.flush()
            last_record_s = loop.time()
        if left is not None:
            left -= len(shown)
        is_late = plan.timeout_ms is not None and (loop.time() - last_record_s) * 1000 > plan.timeout_ms
        if left == 0 or is_late:
            return
        if _is_done(plan, fetched, stop):
            positions.pop(fetched.partition, None)


def _is_done(plan: Plan, fetched: Fetched, stop: int | None) -> bool:
    """Whether enough of a partition has been read."""
    is_at_end = 0 <= fetched.high_watermark <= fetched.next_offset
    is_past_stop = stop is not None and fetched.next_offset >= stop
    return is_past_stop or (plan.exits_at_end and is_at_end)


def _records(fetched: Fetched) -> list[Shown]:
    topic, partition = fetched.partition
    return [
        Shown(
            topic,
            partition,
            record.offset,
            record.timestamp_ms,
            batch.is_log_append_time,
            record.key,
            record.value,
            record.headers,
        )
        for batch in fetched.batches
        for record in batch.records
    ]


async def _places(
    admin: AsyncAdmin, plan: Plan
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Where to begin in each partition, and where to stop if a time was given for that."""
    topics = {one.name: one for one in await admin.list_topics(include_internal=True)}
    if plan.topic not in topics:
        raise Failed(no_such_topic(plan.topic, topics))
    count = topics[plan.topic].num_partitions
    missing = [number for number in plan.partitions if number >= count]
    if missing:
        raise Failed(f"{plan.topic} has no partition {missing[0]}; it has 0 to {count - 1}")
    wanted = [TopicPartition(plan.topic, number) for number in plan.partitions or range(count)]

    async def offsets(at: int) -> dict[TopicPartition, int]:
        found = await admin.list_offsets(dict.fromkeys(wanted, at), isolation_level=plan.isolation_level)
        return {partition: require(one).offset for partition, one in found.items()}

    earliest, latest = await offsets(OffsetSpec.EARLIEST), await offsets(OffsetSpec.LATEST)
    at_time = await offsets(plan.span.number) if plan.span.start is Start.TIMESTAMP else {}
    stops = await offsets(plan.span.stop_ms) if plan.span.stop_ms is not None else {}
    positions = {}
    for partition in wanted:
        found = at_time.get(partition, -1)
        bounds = Bounds(earliest[partition], latest[partition], found if found >= 0 else None)
        positions[partition] = first_offset(plan.span, bounds)
    # No record is that late yet: what is there now is all that is early enough, as far as anybody can know.
    stops = {partition: offset if offset >= 0 else latest[partition] for partition, offset in stops.items()}
    done = [partition for partition, stop in stops.items() if positions[partition] >= stop]
    return {partition: positions[partition] for partition in wanted if partition not in done}, stops
