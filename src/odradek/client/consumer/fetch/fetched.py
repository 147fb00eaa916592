# cython: annotation_typing=False
"""The fetched data of one partition: batches as bytes, parsed once, made into records on demand.

Control batches are left out, and so are batches of aborted transactions for readers of committed data. A
batch is checked and decompressed when it is read, so that buffered data takes no more memory than on the
wire.

Compiled by Cython (fetched.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from odradek.client.consumer.consumer_record import BatchRows
from odradek.client.consumer.errors import CorruptRecords
from odradek.client.consumer.positions import NO_EPOCH, PartitionPosition
from odradek.records.batch import (
    CONTROL_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    has_valid_crc,
    read_header,
)
from odradek.records.control import ControlType, read_control_type
from odradek.records.errors import CorruptBatch, RecordsError
from odradek.records.kernels.batch_scan import scan_batches
from odradek.records.kernels.checksums import count_whole
from odradek.records.kernels.column_sinks import RecordsSink
from odradek.records.kernels.layout import BATCH_ROW_WIDTH, ROW_WIDTH, BatchColumn, Stop
from odradek.records.kernels.record_check import new_bytearray
from odradek.records.kernels.record_index import find_run, index_run
from odradek.records.record import (
    RecordIndex,
    append_columns,
    index_batch,
    plain_records,
    read_records,
)

MAX_DECOMPRESSED_BYTES = 2**31 - 1
"""Also the most that columns of bytes can hold."""
MOST_ROWS = 4096
"""Records that are indexed together: batches cost nothing then, and they fit a cache."""
MAX_RUN_ROWS = 2**31 - 1
# C integers by fetched.pxd; layout.py decides the numbers.
_BATCH_ROW_WIDTH = BATCH_ROW_WIDTH
_POSITION = BatchColumn.POSITION
_LAST_OFFSET = BatchColumn.LAST_OFFSET
_LEADER_EPOCH = BatchColumn.PARTITION_LEADER_EPOCH
NOT_PLAIN = TRANSACTIONAL_FLAG | CONTROL_FLAG

Aborted = Iterable[tuple[int, int]]


class Fetched:
    """Bytes of one partition from `offset` on: the fetcher's, then of the one thread that polls."""

    def __init__(
        self,
        state: PartitionPosition,
        offset: int,
        content: memoryview,
        *,
        aborted: Aborted | None = None,
        checks_crc: bool = True,
    ) -> None:
        self.state = state
        self.generation = state.generation
        self.size = len(content)
        self._content = content
        self._checks_crc = checks_crc
        self._aborted = None if aborted is None else deque(sorted(aborted, key=lambda one: one[1]))
        self._aborting: set[int] = set()
        scan = scan_batches(content, 0, len(content), max_batches=2**20)
        # The last batch of a response may be incomplete; the next fetch begins there.
        self._batches = scan.table
        self._count = scan.count
        self._stop = scan.stop
        last = self._count - 1
        last_offset = self._field(last, _LAST_OFFSET) if self._count else -1
        self.last_leader_epoch = self._field(last, _LEADER_EPOCH) if self._count else NO_EPOCH
        self.leader_epoch = NO_EPOCH
        """The offsets of the last batch that was parsed: `offset` is in it or behind it."""
        self.next_fetch_offset = max(offset, last_offset + 1)
        self.offset = offset
        self._next_batch = 0
        self._rows: BatchRows | None = None
        self._rows_batch = 0
        self._row = self._row_count = 0
        self._last_offset = -1

    def mark_buffered(self) -> None:
        """It was added to the buffer; the fetcher continues behind it."""
        state = self.state
        state.fetch_offset = self.next_fetch_offset
        state.fetch_epoch = self.last_leader_epoch
        state.buffered += 1

    @property
    def is_empty(self) -> bool:
        """Whether no batch is left."""
        return self._rows is None and self._next_batch >= self._count

    @property
    def is_no_batch(self) -> bool:
        """Whether the bytes do not begin with a batch, not even an incomplete one."""
        return self._count == 0 and self._stop in (Stop.BAD_MAGIC, Stop.BAD_LENGTH)

    def append_records(
        self, limit: int, key_deserializer: Any, value_deserializer: Any, records: list[Any]
    ) -> None:
        """Append up to `limit` records. After an error `offset` is that of the record at fault."""
        wanted = len(records) + limit
        while len(records) < wanted:
            if self._rows is None and not self._open_next(MOST_ROWS):
                break
            assert self._rows is not None
            end = min(self._row_count, self._row + wanted - len(records))
            self._append_rows(end, key_deserializer, value_deserializer, records)
            if self._row < self._row_count:
                break
            self._rows = None
            self.offset = self._last_offset + 1

    def _append_rows(
        self, end: int, key_deserializer: Any, value_deserializer: Any, records: list[Any]
    ) -> None:
        assert self._rows is not None
        before = len(records)
        try:
            self._rows.append_to(self._row, end, key_deserializer, value_deserializer, records)
        finally:
            # Records before one that cannot be deserialized are returned.
            self._row += len(records) - before
            if self._row < self._row_count:
                self.offset = self._rows.offset_at(self._row)

    def append_columns(self, limit: int, sink: RecordsSink) -> None:
        """Append whole batches of at least `limit` records, or what is left, to columns that are empty yet.

        Records before a fault, or before more than columns can hold, are appended; the next call handles the
        rest.
        """
        if self._rows is not None:
            self._rows, self._next_batch = None, self._rows_batch
        try:
            while len(sink) < limit and self._append_batches(limit - len(sink), sink):
                pass
        except CorruptRecords:
            if not sink:
                raise

    def _append_batches(self, max_rows: int, sink: RecordsSink) -> bool:
        """Append a run, or one batch; False at the end."""
        if not self._find_next():
            return False
        first = self._next_batch
        run_end, rows = self._find_run(max_rows, with_next=True)
        if rows:
            self._next_batch = sink.append_run(self._content, self._batches, first, run_end, self.offset)
        if self._next_batch == first:
            self._append_batch(sink)
            self._next_batch += 1
        self.offset = self._field(self._next_batch - 1, _LAST_OFFSET) + 1
        return True

    def _append_batch(self, sink: RecordsSink) -> None:
        position = self._field(self._next_batch, _POSITION)
        header = read_header(self._content, position)
        try:
            if self._is_for_reader(header, position):
                plain = plain_records(self._content, position, header, MAX_DECOMPRESSED_BYTES - sink.size)
                append_columns(sink, header, plain, self.offset)
        except RecordsError as error:
            raise CorruptRecords(self.state.topic_partition, header.base_offset, str(error)) from error

    def _open_next(self, max_rows: int) -> bool:
        """Check and index the next batches with records for the reader: a run, or one; False at the end."""
        while self._find_next():
            self._rows_batch = self._next_batch
            is_open = self._open_run(max_rows) or self._open_batch()
            self._last_offset = self._field(self._next_batch - 1, _LAST_OFFSET)
            if is_open:
                assert self._rows is not None
                self._row = self._rows.first_at(self.offset, self._row_count)
                return True
            self.offset = self._last_offset + 1
        return False

    def _open_run(self, max_rows: int) -> bool:
        """Several batches at once, which must be uncompressed and ordinary; their rows have absolute offsets
        and times.

        False if there are none, or the first is damaged, or has no records; the caller then checks single
        batches.
        """
        first = self._next_batch
        end, rows = self._find_run(max_rows)
        table = memoryview(new_bytearray(rows * ROW_WIDTH * 8)).cast("q")
        end, rows = index_run(self._content, self._batches, first, end, table)
        if not rows:
            return False
        self._next_batch = end
        state = self.state
        self._rows = BatchRows(state.topic, state.partition, self._content, table, 0, 0, 0, self.leader_epoch)
        self._row_count = rows
        return True

    def _open_batch(self) -> bool:
        position = self._field(self._next_batch, _POSITION)
        header = read_header(self._content, position)
        index = self._index(header, position)
        self._next_batch += 1
        if index is None or not index.count:
            return False
        is_append_time = header.timestamp_type == 1
        self._rows = BatchRows(
            self.state.topic,
            self.state.partition,
            index.buffer,
            index.table,
            header.base_offset,
            header.max_timestamp_ms if is_append_time else header.base_timestamp_ms,
            int(is_append_time),
            header.partition_leader_epoch,
        )
        self._row_count = index.count
        return True

    def _find_next(self) -> bool:
        """Go to the next batch that is not before the offset; False at the end."""
        while self._next_batch < self._count:
            if self._field(self._next_batch, _LAST_OFFSET) >= self.offset:
                self.leader_epoch = self._field(self._next_batch, _LEADER_EPOCH)
                return True
            self._next_batch += 1
        return False

    def _field(self, index: int, column: int) -> int:
        number: int = self._batches[index * _BATCH_ROW_WIDTH + column]
        return number

    def _find_run(self, max_rows: int, *, with_next: bool = False) -> tuple[int, int]:
        """The end of the run of uncompressed, ordinary batches with valid CRCs; and their largest number of
        records.

        `with_next`: not before there are `max_rows`, but after.
        """
        batches, first = self._batches, self._next_batch
        end, rows = find_run(batches, first, self._count, max_rows)
        if with_next and rows < max_rows:
            end, rows = find_run(batches, first, min(end + 1, self._count), MAX_RUN_ROWS)
        if self._checks_crc and rows:
            if first:
                batches = batches[first * BATCH_ROW_WIDTH :]
            end = first + count_whole(self._content, batches, end - first)
        return end, rows

    def _index(self, header: BatchHeader, position: int) -> RecordIndex | None:
        """Where the records of a batch are; None if they are not for the reader."""
        try:
            if not self._is_for_reader(header, position):
                return None
            return index_batch(self._content, position, max_bytes=MAX_DECOMPRESSED_BYTES, header=header)
        except RecordsError as error:
            raise CorruptRecords(self.state.topic_partition, header.base_offset, str(error)) from error

    def _is_for_reader(self, header: BatchHeader, position: int) -> bool:
        """Whether a batch, which must be complete, has records that the reader may see."""
        if self._checks_crc and not has_valid_crc(self._content, position, header):
            raise CorruptBatch("its CRC is wrong")
        return not header.attributes & NOT_PLAIN or self._is_data(header, position)

    def _is_data(self, header: BatchHeader, position: int) -> bool:
        if self._aborted is not None:
            while self._aborted and self._aborted[0][1] <= header.last_offset:
                self._aborting.add(self._aborted.popleft()[0])
        if header.is_control:
            (marker,) = read_records(self._content, position, max_bytes=MAX_DECOMPRESSED_BYTES)
            if read_control_type(marker.key) is ControlType.ABORT:
                self._aborting.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._aborting)
