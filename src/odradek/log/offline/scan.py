"""Read records out of log directories, ours or Kafka's, as Arrow batches, without a broker.

    for rows in scan("data/orders-0", start_timestamp_ms=...):
        ...                                  # a pyarrow.RecordBatch: topic, then the columns of records.arrow

Only what is needed is read: segments by their names, positions by the offset index, times by the time index.
At most one chunk of batches and one of rows is in memory.

A time means what it means to ListOffsets, to consumers and to Spark: the first offset whose record is as
young as that. Where timestamps do not rise with the offsets, rows in between may be older or younger; filter
these by the column `timestamp` if it matters.

There is no high watermark without a broker: everything up to the end of the log is read, save for a batch
that is torn or being written. With `read_committed` the rows of aborted transactions are left out, and the
end is the first offset of a transaction still open.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from odradek.common.ids import TopicPartition
from odradek.log import filenames
from odradek.log.errors import DamagedIndex, LogCorrupted
from odradek.log.offline.read_only import (
    MAX_DECOMPRESSED_BYTES,
    PartitionFiles,
    find_partitions,
    list_partition,
    read_checkpoint,
)
from odradek.log.partition import timestamps
from odradek.log.partition.producer_replay import replay, replay_chunk
from odradek.log.partition.reading import aborted_between
from odradek.log.producers.producer_snapshots import CorruptSnapshot, decode_snapshot
from odradek.log.producers.producer_states import ProducerStates
from odradek.log.segment.batch_chunks import BatchChunk, batch_chunks
from odradek.log.segment.segment import Segment
from odradek.log.segment.txn_index import AbortedTxn
from odradek.records import arrow
from odradek.records.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from odradek.records.errors import RecordsError
from odradek.records.kernels.layout import BatchColumn

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_CHUNK_BYTES = 16 * 1024 * 1024
_END = 2**62


class ScanRange(NamedTuple):
    """What to read of each partition. Offsets and times are half open: start is read, end is not."""

    start_offset: int | None = None
    end_offset: int | None = None
    start_timestamp_ms: int | None = None
    end_timestamp_ms: int | None = None
    read_committed: bool = False


def schema() -> pa.Schema:
    """The columns of every batch: the topic, and those of `records.arrow`."""
    import pyarrow as pa  # noqa: PLC0415

    return pa.schema([pa.field("topic", pa.string(), nullable=False), *arrow.schema()])


def scan(
    path: str | os.PathLike[str],
    *,
    start_offset: int | None = None,
    end_offset: int | None = None,
    start_timestamp_ms: int | None = None,
    end_timestamp_ms: int | None = None,
    read_committed: bool = False,
    partitions: Collection[TopicPartition] | None = None,
    chunk_bytes: int = DEFAULT_CHUNK_BYTES,
) -> Iterator[pa.RecordBatch]:
    """The records of a partition's directory, or of all partitions (or those given) in a log directory.

    NotALog if the path is neither; LogCorrupted at the first damage that is met.
    """
    wanted = ScanRange(start_offset, end_offset, start_timestamp_ms, end_timestamp_ms, read_committed)
    for directory in find_partitions(os.fspath(path)):
        files = list_partition(directory)
        if partitions is None or files.partition in partitions:
            partition = PartitionScan(files, wanted, chunk_bytes)
            for rows in partition.rows(*partition.bounds()):
                yield _with_topic(rows, files.partition.topic)


def _with_topic(rows: pa.RecordBatch, topic: str) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415

    topics = pa.repeat(pa.scalar(topic), rows.num_rows)
    return pa.RecordBatch.from_arrays([topics, *rows.columns], schema=schema())


class PartitionScan:
    """One pass over one partition."""

    def __init__(
        self, files: PartitionFiles, wanted: ScanRange, chunk_bytes: int = DEFAULT_CHUNK_BYTES
    ) -> None:
        self.files = files
        self.wanted = wanted
        self.chunk_bytes = chunk_bytes
        self.segments = files.open_segments()

    def rows(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Rows of [start, end) in the order of their offsets, with the columns of `records.arrow`."""
        if not len(self.segments):
            return
        try:
            aborted = _AbortedRanges(self._aborted(start, end) if self.wanted.read_committed else ())
        except RecordsError as error:
            raise self._corrupted(self.segments.active, error.problem, error.position) from error
        for segment in self.segments.from_offset(start):
            if segment.base_offset >= end:
                return
            yield from self._segment(segment, start, end, aborted)

    # Where to begin and to end

    def bounds(self) -> tuple[int, int]:
        """The first offset that is wanted, and the first behind it that is not."""
        if not len(self.segments):
            return 0, 0
        try:
            return self._bounds()
        except RecordsError as error:
            raise self._corrupted(self.segments.active, error.problem, error.position) from error

    def _bounds(self) -> tuple[int, int]:
        wanted = self.wanted
        starts = read_checkpoint(self.files.log_directory, filenames.LOG_START_CHECKPOINT)
        log_start = max(starts.get(self.files.partition, 0), self.segments.first.base_offset)
        start = max(log_start, wanted.start_offset or 0)
        end = _END if wanted.end_offset is None else wanted.end_offset
        if wanted.start_timestamp_ms is not None:
            start = max(start, self._offset_at(wanted.start_timestamp_ms, log_start))
        if wanted.end_timestamp_ms is not None:
            end = min(end, self._offset_at(wanted.end_timestamp_ms, log_start))
        if wanted.read_committed:
            end = min(end, self._last_stable_offset())
        return start, end

    def _offset_at(self, timestamp_ms: int, log_start_offset: int) -> int:
        """The first offset as young as that; past the end if there is none."""
        found = timestamps.first_at_or_after(
            self.segments, timestamp_ms, log_start_offset, MAX_DECOMPRESSED_BYTES
        )
        return found.offset if found is not None else _END

    def _last_stable_offset(self) -> int:
        """The first offset of a transaction that is open at the end of the log."""
        producers = ProducerStates(end_offset=self.segments.first.base_offset)
        for offset in reversed(self.files.snapshots):
            try:
                with open(self.files.join(offset, filenames.SNAPSHOT), "rb") as file:
                    producers = ProducerStates(decode_snapshot(file.read()), offset)
                break
            except (CorruptSnapshot, FileNotFoundError):
                continue
        replay(self.segments.from_offset(producers.end_offset), producers, _END)
        return next(iter(producers.ongoing), _END)

    def _aborted(self, start: int, end: int) -> Iterable[AbortedTxn]:
        """By the transaction indexes, or, where one is damaged, by the markers in the log."""
        try:
            for segment in self.segments:
                segment.txn_index.check(segment.base_offset)
            return aborted_between(self.segments, start, end)
        except DamagedIndex:
            producers = ProducerStates(end_offset=self.segments.first.base_offset)
            chunks = (chunk for segment in self.segments for chunk in batch_chunks(segment.log))
            return [one for chunk in chunks for one in replay_chunk(chunk, chunk.scan.count, producers)]

    # Rows

    def _segment(
        self, segment: Segment, start: int, end: int, aborted: _AbortedRanges
    ) -> Iterator[pa.RecordBatch]:
        try:
            position = segment.position_of(start)
        except RecordsError as error:
            raise self._corrupted(segment, error.problem, error.position) from error
        if position is None:
            return
        for chunk in batch_chunks(segment.log, position, self.chunk_bytes):
            yield from self._chunk(segment, chunk, start, end, aborted)
            bases = chunk.scan.column(BatchColumn.BASE_OFFSET)
            if len(bases) and bases[-1] >= end:
                return
            if chunk.problem is not None:
                raise self._corrupted(segment, chunk.problem, chunk.end_position)

    def _chunk(
        self, segment: Segment, chunk: BatchChunk, start: int, end: int, aborted: _AbortedRanges
    ) -> Iterator[pa.RecordBatch]:
        """The rows of one chunk: batches are chosen by their headers, rows at the edges by offsets."""
        count = bisect_left(chunk.column(BatchColumn.BASE_OFFSET), end)
        view = _chosen_bytes(chunk, count, aborted)
        if not len(view):
            return
        try:
            for rows in arrow.read_record_batches(
                view,
                max_bytes=MAX_DECOMPRESSED_BYTES,
                partition=self.files.partition.partition,
                chunk_bytes=self.chunk_bytes,
            ):
                rows = _between(rows, start, end)
                if rows.num_rows:
                    yield rows
        except RecordsError as error:
            at = chunk.start + chunk.position(0) + max(error.position, 0)
            raise self._corrupted(segment, error.problem, at) from error

    def _corrupted(self, segment: Segment, problem: str, position: int) -> LogCorrupted:
        following = self.segments.after(segment)
        end = following.base_offset if following is not None else segment.base_offset
        return LogCorrupted(
            self.files.partition,
            segment.log.path,
            problem,
            position=position,
            valid_end_offset=segment.base_offset,
            expected_end_offset=end,
        )


class _AbortedRanges:
    """The aborted transactions, asked by producer and offset."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._by_producer: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for one in aborted:
            self._by_producer[one.producer_id].append((one.first_offset, one.last_offset))

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def covers(self, producer_id: int, offset: int) -> bool:
        """Whether a transactional batch of that producer at that offset must not be seen."""
        return any(first <= offset <= last for first, last in self._by_producer.get(producer_id, ()))


def _chosen_bytes(chunk: BatchChunk, count: int, aborted: _AbortedRanges) -> memoryview:
    """The first `count` batches of a chunk, without those of aborted transactions."""
    if count == 0:
        return chunk.buffer[:0]
    field = chunk.scan.field
    end = field(count - 1, BatchColumn.POSITION) + field(count - 1, BatchColumn.SIZE_IN_BYTES)
    first = field(0, BatchColumn.POSITION)
    dropped = [index for index in range(count) if _is_aborted(chunk, index, aborted)] if aborted else []
    if not dropped:
        return chunk.buffer[first:end]
    kept = bytearray()
    for index in dropped:
        position = field(index, BatchColumn.POSITION)
        kept += chunk.buffer[first:position]
        first = position + field(index, BatchColumn.SIZE_IN_BYTES)
    kept += chunk.buffer[first:end]
    return memoryview(kept)


def _is_aborted(chunk: BatchChunk, index: int, aborted: _AbortedRanges) -> bool:
    attributes = chunk.scan.field(index, BatchColumn.ATTRIBUTES)
    if attributes & (TRANSACTIONAL_FLAG | CONTROL_FLAG) != TRANSACTIONAL_FLAG:
        return False
    producer_id = chunk.scan.field(index, BatchColumn.PRODUCER_ID)
    return aborted.covers(producer_id, chunk.scan.field(index, BatchColumn.BASE_OFFSET))


def _between(rows: pa.RecordBatch, start: int, end: int) -> pa.RecordBatch:
    """The rows with offsets in [start, end); offsets rise."""
    offsets = rows.column("offset")
    if not rows.num_rows or (offsets[0].as_py() >= start and offsets[-1].as_py() < end):
        return rows
    numbers = (
        memoryview(offsets.buffers()[1]).cast("B").cast("q")[offsets.offset : offsets.offset + len(offsets)]
    )
    first, last = bisect_left(numbers, start), bisect_left(numbers, end)
    return rows.slice(first, max(0, last - first))
