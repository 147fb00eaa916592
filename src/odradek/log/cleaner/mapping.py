"""Stores the last offset of each key in the dirty part of a log, until the map is full.

Oldest first, record by record: when the map is full in the middle of a batch, the log is cleaned up to the
record before, and the next run continues there. So every run makes progress, however small the map is, and
with Kafka's rule at least a whole segment is mapped if its keys fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odradek.log.cleaner.errors import reading
from odradek.log.cleaner.filter.batch_filter import ALONE, check_crcs, classify_batches, runs
from odradek.log.cleaner.filter.offset_map import OffsetMap, RecordTable
from odradek.log.cleaner.filter.transactions import CleanedTransactions
from odradek.log.cleaner.statistics import CleanerStatistics
from odradek.log.segment.batch_chunks import BatchChunk, batch_chunks
from odradek.log.segment.segment import Segment
from odradek.records.kernels.layout import BatchColumn
from odradek.records.record import plain_records


class DirtyMapper:
    """One pass from `start_offset` on; used by one thread."""

    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: CleanedTransactions,
        start_offset: int,
        statistics: CleanerStatistics,
        *,
        chunk_bytes: int,
        max_decompressed_bytes: int,
        pass_bytes: Callable[[int], None],
    ) -> None:
        self._map = offset_map
        self._transactions = transactions
        self._start = start_offset
        self._statistics = statistics
        self._chunk_bytes = chunk_bytes
        self._max_decompressed_bytes = max_decompressed_bytes
        self._pass_bytes = pass_bytes
        self._table = RecordTable()
        offset_map.latest_offset = start_offset - 1

    def map(self, segments: Sequence[Segment], end_offset: int) -> None:
        """Fill the map from segments, the last of which ends at `end_offset`; blocks."""
        bases = [segment.base_offset for segment in segments]
        for segment, next_base in zip(segments, [*bases[1:], end_offset], strict=True):
            if next_base <= self._start:
                continue
            with reading(segment):
                if not self._map_segment(segment):
                    return
            # Offsets of the segment without a record are done, too.
            self._map.latest_offset = next_base - 1

    def _map_segment(self, segment: Segment) -> bool:
        """Whether all of it went into the map."""
        position = segment.position_of(self._start) if segment.base_offset < self._start else 0
        if position is None:
            return True
        for chunk in batch_chunks(segment.log, position, self._chunk_bytes):
            check_crcs(chunk)
            self._pass_bytes(chunk.size_in_bytes)
            self._statistics.map_bytes_read += chunk.size_in_bytes
            if not self._map_chunk(chunk):
                return False
        return True

    def _map_chunk(self, chunk: BatchChunk) -> bool:
        verdicts = classify_batches(chunk, self._transactions)
        for first, stop in runs(verdicts):
            if verdicts[first] & ALONE:
                self._digest_alone(chunk, first)
            else:
                self._map.digest_batches(
                    self._table, chunk.buffer, chunk.scan.table, first, stop, verdicts, now_ms=0
                )
            if not self._map.put(self._table, self._start):
                return False
            last_offset = chunk.scan.field(stop - 1, BatchColumn.LAST_OFFSET)
            self._map.latest_offset = max(self._map.latest_offset, last_offset)
        return True

    def _digest_alone(self, chunk: BatchChunk, index: int) -> None:
        header = chunk.header(index)
        if header.is_control:
            self._table.count = 0
            return
        plain = plain_records(chunk.buffer, chunk.position(index), header, self._max_decompressed_bytes)
        self._map.digest_records(
            self._table,
            memoryview(plain.buffer)[plain.start : plain.end],
            header.record_count,
            header.base_offset,
            header.last_offset,
            tombstones_expired=False,
        )
