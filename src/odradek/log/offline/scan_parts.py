"""A scan in parts that can be read at the same time by several processes: a segment, or a piece of one, each.

    parts = plan_parts("data/orders-0", ScanRange(read_committed=True))     # once
    for rows in scan_part(parts[0]):                                        # where it is mounted
        ...                                                                 # a batch as in records.arrow

Where a scan begins and ends is decided once, in the plan: neither open transactions nor times are looked up
again for a part.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from odradek.log.errors import DamagedIndex
from odradek.log.offline.read_only import list_partition
from odradek.log.offline.scan import PartitionScan, ScanRange
from odradek.log.segment.segment import Segment

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_PART_BYTES = 128 * 1024 * 1024


class ScanPart(NamedTuple):
    """Offsets of one partition, `end_offset` not among them. It can be pickled."""

    directory: str
    start_offset: int
    end_offset: int
    read_committed: bool


def plan_parts(directory: str, wanted: ScanRange, part_bytes: int = DEFAULT_PART_BYTES) -> list[ScanPart]:
    """The parts of a partition's directory, in the order of their offsets, of about `part_bytes` or less."""
    scan = PartitionScan(list_partition(directory), wanted)
    start, end = scan.bounds()
    if len(scan.segments):
        end = min(end, scan.segments.active.next_offset())
    if start >= end:
        return []
    cuts: set[int] = set()
    for segment in scan.segments.from_offset(start):
        if segment.base_offset < end:
            cuts |= {segment.base_offset, *_cuts_within(segment, part_bytes)}
    edges = [start, *sorted(cut for cut in cuts if start < cut < end), end]
    return [ScanPart(directory, first, last, wanted.read_committed) for first, last in pairwise(edges)]


def scan_part(part: ScanPart) -> Iterator[pa.RecordBatch]:
    """The rows of a part, with the columns of `records.arrow`; LogCorrupted at the first damage."""
    wanted = ScanRange(read_committed=part.read_committed)
    files = list_partition(part.directory)
    yield from PartitionScan(files, wanted).rows(part.start_offset, part.end_offset)


def _cuts_within(segment: Segment, part_bytes: int) -> list[int]:
    """Offsets at which batches begin, by the offset index; none if that is damaged."""
    count = -(-segment.log.size // part_bytes)
    try:
        found = [
            segment.offset_index.lookup_position(segment.log.size * index // count)
            for index in range(1, count)
        ]
    except DamagedIndex:
        return []
    return [entry.offset + 1 for entry in found if entry is not None]
