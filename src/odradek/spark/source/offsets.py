"""Offsets of partitions: bounds of a read, JSON in checkpoints, ranges and how they are split. No I/O."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from odradek.common.ids import TopicPartition

Offsets = dict[TopicPartition, int]
JsonOffsets = dict[str, dict[str, int]]


class BoundKind(StrEnum):
    """How the start or the end of a read is given."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSETS = "offsets"
    TIMES = "times"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Bound:
    """The start or the end of a read; `partitions` has an offset or a time for each."""

    kind: BoundKind
    partitions: tuple[tuple[TopicPartition, int], ...] = ()
    time_ms: int = 0


class OffsetRange(NamedTuple):
    """Offsets of one partition; `start` is read, `end` is not."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets."""
        return self.end - self.start


def to_json(offsets: Mapping[TopicPartition, int]) -> JsonOffsets:
    """As in the checkpoints of Spark's own source: {"topic": {"0": 23}}."""
    found: JsonOffsets = {}
    for partition in sorted(offsets):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return found


def from_json(found: Mapping[str, Mapping[str, int]]) -> Offsets:
    """The opposite of `to_json`."""
    return {
        TopicPartition(topic, int(number)): offset
        for topic, entries in found.items()
        for number, offset in entries.items()
    }


def limited(start: Mapping[TopicPartition, int], latest: Offsets, most: int) -> Offsets:
    """Where a micro-batch of `most` offsets ends: each partition gives in proportion to what it has.

    Shares are rounded as Spark's own source does: down, but those below one up to one, so that no partition
    is left behind for ever. Only these make a micro-batch larger than `most`.
    """
    sizes = {partition: max(0, end - start.get(partition, end)) for partition, end in latest.items()}
    total = sum(sizes.values())
    if total <= most:
        return latest
    return {one: end - sizes[one] + _share(sizes[one], total, most) for one, end in latest.items()}


def _share(size: int, total: int, most: int) -> int:
    exact = most * (size / total)
    return min(size, math.ceil(exact) if exact < 1 else math.floor(exact))


def split(ranges: Iterable[OffsetRange], min_partitions: int, max_records: int | None) -> list[OffsetRange]:
    """One range a task: without empty ones, and cut until there are enough, none too large."""
    ranges = [one for one in ranges if one.size > 0]
    if max_records is not None:
        ranges = [part for one in ranges for part in _cut(one, -(-one.size // max_records))]
    if len(ranges) >= min_partitions:
        return ranges
    total = sum(one.size for one in ranges)
    return [part for one in ranges for part in _cut(one, max(1, -(-min_partitions * one.size // total)))]


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    """Even parts."""
    edges = [whole.start + whole.size * index // parts for index in range(parts + 1)]
    return [OffsetRange(whole.partition, start, end) for start, end in pairwise(edges) if end > start]
