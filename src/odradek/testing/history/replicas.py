"""Compares the files of a partition's replicas byte for byte, up to the high watermark.

It parses the files by itself and shares no code with the log, so that a bug there cannot hide here. Segments
may begin at different offsets on different replicas; batches may not differ. Only for topics that are not
compacted: each replica compacts by itself.

| bytes of a batch | |
| --- | --- |
| 0-7 | base offset |
| 8-11 | length of what follows |
| 23-26 | last offset delta |
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

HEADER = 12
LAST_OFFSET_DELTA = struct.Struct(">i")
FRAME = struct.Struct(">qi")
SHORTEST = 61


class Batch(NamedTuple):
    """One batch of a replica: its offsets, its bytes and where they are."""

    base_offset: int
    last_offset: int
    content: bytes
    where: str


class Epoch(NamedTuple):
    """One line of a leader epoch file."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class Replica:
    """The files of one replica of one partition."""

    name: str
    directory: Path

    @property
    def log_start_offset(self) -> int:
        """The first offset of the first segment."""
        return min((int(path.stem) for path in self.directory.glob("*.log")), default=0)

    def batches(self) -> Iterator[Batch]:
        """All batches in order; what follows the last whole batch of a segment is left out."""
        for path in sorted(self.directory.glob("*.log")):
            yield from _batches_of(path, f"{self.name}:{path.name}")

    def epochs(self) -> list[Epoch]:
        """The leader epochs; none if there is no file."""
        path = self.directory / "leader-epoch-checkpoint"
        if not path.exists():
            return []
        _version, _count, *lines = path.read_text().splitlines()
        return [Epoch(*map(int, line.split())) for line in lines]


def _batches_of(path: Path, where: str) -> Iterator[Batch]:
    content = path.read_bytes()
    position = 0
    while position + SHORTEST <= len(content):
        base_offset, length = FRAME.unpack_from(content, position)
        end = position + HEADER + length
        if length < SHORTEST - HEADER or end > len(content):
            return
        (delta,) = LAST_OFFSET_DELTA.unpack_from(content, position + 23)
        yield Batch(base_offset, base_offset + delta, content[position:end], f"{where}@{position}")
        position = end


def high_watermarks(log_dir: Path) -> dict[str, int]:
    """By `topic-partition`, from replication-offset-checkpoint."""
    path = log_dir / "replication-offset-checkpoint"
    if not path.exists():
        return {}
    _version, _count, *lines = path.read_text().splitlines()
    rows = (line.rsplit(" ", 2) for line in lines)
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in rows}


def differences(replicas: Sequence[Replica], high_watermark: int) -> list[str]:
    """What differs below the high watermark; empty if all are the same and reach up to it."""
    found: list[str] = []
    if not replicas:
        return found
    start = max(replica.log_start_offset for replica in replicas)
    first, *others = replicas
    if not others:
        found += _shortfall(first, start, high_watermark)
    for other in others:
        found += _compare_batches(first, other, start, high_watermark)
        found += _compare_epochs(first, other, start, high_watermark)
    return found


def _shortfall(replica: Replica, start: int, high_watermark: int) -> list[str]:
    end = max((batch.last_offset + 1 for batch in replica.batches()), default=start)
    return [] if end >= high_watermark else [f"{replica.name} ends at {end}, below {high_watermark}"]


def _between(replica: Replica, start: int, high_watermark: int) -> Iterator[Batch]:
    for batch in replica.batches():
        if batch.last_offset >= start and batch.base_offset < high_watermark:
            yield batch


def _compare_batches(one: Replica, other: Replica, start: int, high_watermark: int) -> Iterator[str]:
    """The first difference is enough: what follows it is shifted."""
    end = start
    pairs = zip_longest(_between(one, start, high_watermark), _between(other, start, high_watermark))
    for left, right in pairs:
        if left is None or right is None:
            rest = left or right
            assert rest is not None
            short = one.name if left is None else other.name
            yield f"{short} ends at {end}, below the high watermark {high_watermark}: {rest.where} has more"
            return
        if left.content != right.content:
            at = _first_difference(left.content, right.content)
            yield f"offset {left.base_offset}: {left.where} and {right.where} differ in byte {at}"
            return
        end = left.last_offset + 1
    if end < high_watermark:
        yield f"{one.name} and {other.name} end at {end}, below the high watermark {high_watermark}"


def _first_difference(left: bytes, right: bytes) -> int:
    same = zip(left, right, strict=False)
    return next((at for at, (a, b) in enumerate(same) if a != b), min(len(left), len(right)))


def _compare_epochs(one: Replica, other: Replica, start: int, high_watermark: int) -> Iterator[str]:
    left, right = (_epochs_between(replica.epochs(), start, high_watermark) for replica in (one, other))
    if left != right:
        yield f"leader epochs below {high_watermark}: {one.name} has {left}, {other.name} has {right}"


def _epochs_between(epochs: list[Epoch], start: int, high_watermark: int) -> list[tuple[int, int]]:
    """The epochs that have records there. One that began before `start` counts from there."""
    if not epochs:
        return []
    ends = [*(epoch.start_offset for epoch in islice(epochs, 1, None)), high_watermark]
    return [
        (epoch.epoch, max(epoch.start_offset, start))
        for epoch, end in zip(epochs, ends, strict=True)
        if epoch.start_offset < high_watermark and end > max(epoch.start_offset, start)
    ]


def partition_differences(log_dirs: Mapping[str, Path], partition: str) -> list[str]:
    """Compare all brokers' directories of `topic-partition` up to the highest checkpointed high watermark.

    The brokers should be stopped, or at least idle with everybody in sync: a checkpoint may then be old, but
    every replica has everything.
    """
    replicas = [
        Replica(name, log_dir / partition)
        for name, log_dir in log_dirs.items()
        if (log_dir / partition).is_dir()
    ]
    marks = [high_watermarks(log_dir).get(partition, 0) for log_dir in log_dirs.values()]
    return [f"{partition}: {difference}" for difference in differences(replicas, max(marks, default=0))]
