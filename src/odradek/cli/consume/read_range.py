"""Looks up the start and stop offsets of each partition before reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek.cli.connecting import Failed
from odradek.cli.consume.start_offsets import Bounds, Span, Start, first_offset
from odradek.cli.topic_names import no_such_topic
from odradek.client.admin.admin import AsyncAdmin
from odradek.client.admin.base import require
from odradek.client.admin.offsets import IsolationLevel, OffsetSpec
from odradek.common.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class ReadRange:
    """The start offset of each partition, and the exclusive stop offset if a stop time was given."""

    starts: Mapping[TopicPartition, int]
    stops: Mapping[TopicPartition, int] = field(default_factory=dict)


async def wanted_partitions(
    admin: AsyncAdmin, topic: str, partitions: tuple[int, ...]
) -> list[TopicPartition]:
    """The selected partitions, by default all; Failed for one that does not exist."""
    topics = {one.name: one for one in await admin.list_topics(include_internal=True)}
    if topic not in topics:
        raise Failed(no_such_topic(topic, topics))
    count = topics[topic].num_partitions
    missing = [number for number in partitions if number >= count]
    if missing:
        raise Failed(f"{topic} has no partition {missing[0]}; it has 0 to {count - 1}")
    return [TopicPartition(topic, number) for number in dict.fromkeys(partitions) or range(count)]


async def find_read_range(
    admin: AsyncAdmin, wanted: list[TopicPartition], span: Span, isolation_level: IsolationLevel
) -> ReadRange:
    """The offsets of a span; partitions with nothing to read are left out."""

    async def offsets(at: int) -> dict[TopicPartition, int]:
        found = await admin.list_offsets(dict.fromkeys(wanted, at), isolation_level=isolation_level)
        return {partition: require(one).offset for partition, one in found.items()}

    earliest, latest = await offsets(OffsetSpec.EARLIEST), await offsets(OffsetSpec.LATEST)
    at_time = await offsets(span.number) if span.start is Start.TIMESTAMP else {}
    stops = await offsets(span.stop_ms) if span.stop_ms is not None else {}
    starts = {}
    for partition in wanted:
        found = at_time.get(partition, -1)
        bounds = Bounds(earliest[partition], latest[partition], found if found >= 0 else None)
        starts[partition] = first_offset(span, bounds)
        if starts[partition] > bounds.latest:
            raise Failed(
                f"{partition} ends at offset {bounds.latest}; there is no offset {starts[partition]} yet"
            )
    # No record has a timestamp that late: stop at the current end.
    stops = {partition: offset if offset >= 0 else latest[partition] for partition, offset in stops.items()}
    left = {one: start for one, start in starts.items() if one not in stops or start < stops[one]}
    return ReadRange(left, stops)
