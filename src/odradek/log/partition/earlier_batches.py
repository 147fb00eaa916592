"""The last batches of a producer, read from the log: a snapshot of producer state has only the newest."""

from __future__ import annotations

from odradek.log.producers.producer_states import BATCHES_KEPT, BatchMetadata, ProducerEntry
from odradek.log.segment.batch_chunks import batch_chunks
from odradek.log.segment.segment import Segment
from odradek.log.segment.segments import Segments
from odradek.records.batch import CONTROL_FLAG
from odradek.records.kernels.layout import BatchColumn

MAX_BYTES = 4 << 20
"""How much of the log is looked through: what a producer had in flight at a restart lies close together."""


def complete(entry: ProducerEntry, segments: Segments) -> None:
    """Give an entry that comes from a snapshot the batches before its first one; blocks, but only once."""
    if not entry.is_from_snapshot:
        return
    entry.is_from_snapshot = False
    missing = BATCHES_KEPT - len(entry.batches)
    found: list[BatchMetadata] = []
    end_offset = entry.batches[0].base_offset if entry.batches else 0
    bytes_left = MAX_BYTES
    segment = segments.floor(end_offset - 1)
    while segment is not None and bytes_left > 0 and len(found) < missing:
        end_position = segment.position_of(end_offset)
        end_position = segment.size if end_position is None else end_position
        start = segment.offset_index.lookup_position(max(end_position - bytes_left, 0))
        position = 0 if start is None else start.position
        found = _batches_of(entry, segment, position, end_offset) + found
        bytes_left -= end_position - position
        end_offset = segment.base_offset
        segment = segments.floor(end_offset - 1)
    if found and missing > 0:
        entry.batches = (*found[-missing:], *entry.batches)


def _batches_of(
    entry: ProducerEntry, segment: Segment, position: int, end_offset: int
) -> list[BatchMetadata]:
    """The producer's batches of its present epoch between a position and an offset."""
    found: list[BatchMetadata] = []
    for chunk in batch_chunks(segment.log, position):
        for index, producer_id in enumerate(chunk.column(BatchColumn.PRODUCER_ID)):
            if chunk.scan.field(index, BatchColumn.BASE_OFFSET) >= end_offset:
                return found
            if producer_id != entry.producer_id:
                continue
            header = chunk.header(index)
            if header.producer_epoch == entry.producer_epoch and not header.attributes & CONTROL_FLAG:
                found.append(BatchMetadata.of(header))
    return found
