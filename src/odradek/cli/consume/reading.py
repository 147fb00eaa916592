"""Reads and prints the records of a plan until its limits are reached or it is interrupted."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from odradek.cli.consume.read_range import find_read_range, wanted_partitions
from odradek.cli.consume.record_format import Format
from odradek.cli.consume.start_offsets import Span
from odradek.client.admin.admin import AsyncAdmin
from odradek.client.admin.offsets import IsolationLevel
from odradek.client.config import ClientConfig
from odradek.client.consumer.async_consumer import AsyncConsumer
from odradek.client.consumer.consumer_record import ConsumerRecord
from odradek.client.consumer.errors import NotSubscribed
from odradek.common.ids import TopicPartition

Record = ConsumerRecord[bytes, bytes]

MOST_PER_POLL = 5000
LONGEST_WAIT_S = 0.1
"""How often positions are compared with the ends: transaction markers advance them without a record."""


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What to read, and when to stop. A group starts at its committed offsets."""

    bootstrap: str
    topic: str
    partitions: tuple[int, ...]
    group: str | None
    span: Span
    max_records: int | None
    exits_at_end: bool
    timeout_ms: int | None
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    settings: Mapping[str, Any] = field(default_factory=dict)


async def read_until_interrupted(plan: ReadPlan, show: Format) -> None:
    """Ctrl-C stops reading without an error, and all records read so far are printed."""
    reading = asyncio.ensure_future(_read(plan, show, sys.stdout.buffer))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, reading.cancel)
    try:
        await reading
    except asyncio.CancelledError:
        sys.stdout.buffer.flush()


async def _read(plan: ReadPlan, show: Format, out: BinaryIO) -> None:
    settings = {
        "bootstrap_servers": plan.bootstrap,
        "group_id": plan.group,
        "isolation_level": plan.isolation_level.name.lower(),
        "auto_offset_reset": plan.span.auto_offset_reset,
        "allow_auto_create_topics": False,
        **plan.settings,
    }
    shared = {one.name for one in dataclasses.fields(ClientConfig)}
    async with (
        AsyncConsumer(**settings) as consumer,
        AsyncAdmin(**{name: value for name, value in settings.items() if name in shared}) as admin,
    ):
        await admin.connect()
        stops = await _begin(plan, consumer, admin)
        if plan.max_records != 0 and (stops is None or consumer.assignment()):
            await _print(plan, show, out, consumer, stops or {})


async def _begin(
    plan: ReadPlan, consumer: AsyncConsumer[bytes, bytes], admin: AsyncAdmin
) -> Mapping[TopicPartition, int] | None:
    """Subscribe with the group, or assign the partitions of the plan; returns the stops, None for a group."""
    wanted = await wanted_partitions(admin, plan.topic, plan.partitions)
    if plan.group is not None:
        if plan.partitions:
            consumer.assign(wanted)
        else:
            consumer.subscribe([plan.topic])
        return None
    read_range = await find_read_range(admin, wanted, plan.span, plan.isolation_level)
    consumer.assign(read_range.starts)
    for partition, offset in read_range.starts.items():
        consumer.seek(partition, offset)
    return read_range.stops


async def _print(
    plan: ReadPlan,
    show: Format,
    out: BinaryIO,
    consumer: AsyncConsumer[bytes, bytes],
    stops: Mapping[TopicPartition, int],
) -> None:
    loop = asyncio.get_running_loop()
    left, last_record_s = plan.max_records, loop.time()
    ends = _Ends(consumer, stops, plan.exits_at_end)
    while left != 0 and not await ends.are_reached():
        most = MOST_PER_POLL if left is None else min(left, MOST_PER_POLL)
        records = ends.cut(await consumer.poll(LONGEST_WAIT_S, max_records=most))
        if records:
            out.write(b"".join(map(show, records)))
            out.flush()
            last_record_s = loop.time()
        elif plan.timeout_ms is not None and (loop.time() - last_record_s) * 1000 > plan.timeout_ms:
            return
        if left is not None:
            left -= len(records)


class _Ends:
    """Tracks which partitions have been read to their end; these are paused.

    The end of a partition is its end offset when it was assigned, or the given stop.
    """

    def __init__(
        self,
        consumer: AsyncConsumer[bytes, bytes],
        stops: Mapping[TopicPartition, int],
        exits_at_end: bool,
    ) -> None:
        self._consumer = consumer
        self._stops = stops
        self._exits_at_end = exits_at_end
        self._ends: dict[TopicPartition, int] = dict(stops)

    def cut(self, records: list[Record]) -> list[Record]:
        """The records before the stops."""
        if not self._stops:
            return records
        stops = self._stops
        return [one for one in records if one.offset < stops[TopicPartition(one.topic, one.partition)]]

    async def are_reached(self) -> bool:
        """Whether nothing is left to read. A member that has no partition (yet) waits for one."""
        if not self._exits_at_end and not self._stops:
            return False
        unread = self._consumer.assignment() - self._consumer.paused()
        await self._find(unread - self._ends.keys())
        for partition in unread:
            with suppress(NotSubscribed):  # it may have been reassigned to another member
                if await self._consumer.position(partition) >= self._ends[partition]:
                    self._consumer.pause([partition])
        mine = self._consumer.assignment()
        return bool(mine) and mine == self._consumer.paused()

    async def _find(self, partitions: set[TopicPartition]) -> None:
        if partitions:
            self._ends |= await self._consumer.end_offsets(partitions)
