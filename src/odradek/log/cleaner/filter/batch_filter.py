"""Filters batches in memory by the rules of compaction; accesses no files.

    record                                          stays
    behind the map's latest offset                  yes: nothing is known about it
    without key                                     no, and is counted
    older than the key's last offset in the map     no
    tombstone, its batch's delete horizon is past   no
    any other                                       yes

    batch                                           becomes
    all records stay                                what it was, byte for byte
    some stay                                       the same header, fewer records, compressed as before
    none stays                                      nothing, or a header alone if its last offset is kept
    a tombstone stays, no delete horizon yet        the same with a horizon: now + delete.retention.ms
    of an aborted transaction                       as if none stayed
    a marker                                        transactions.py says when it may go; then as a tombstone

The last offset of a batch is kept if it is a producer's last sequence or the end of a segment.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from odradek.log.cleaner.filter import copy_kernels
from odradek.log.cleaner.filter.layout import Counter, Verdict
from odradek.log.cleaner.filter.offset_map import OffsetMap, RecordTable
from odradek.log.cleaner.filter.transactions import CleanedTransactions
from odradek.log.cleaner.statistics import CleanerStatistics
from odradek.log.segment.batch_chunks import BatchChunk
from odradek.records.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    Buffer,
    TimestampType,
    renew_crc,
)
from odradek.records.builder import finish_batch
from odradek.records.compression import Codec
from odradek.records.control import ControlType, read_control_type
from odradek.records.errors import CorruptBatch
from odradek.records.kernels.checksums import count_whole
from odradek.records.kernels.layout import BatchColumn
from odradek.records.kernels.record_check import new_bytearray, wrapping_difference, wrapping_sum
from odradek.records.record import plain_records, read_records

_ANY_TROUBLE = CODEC_MASK | TRANSACTIONAL_FLAG | CONTROL_FLAG
_MAX_MARKER_BYTES = 4096
# Plain numbers: operators of an enum cost more than the loops that use them.
ALONE = int(Verdict.ALONE)
_OF_EMPTY_TXN = int(Verdict.OF_EMPTY_TXN)
_ROOM = 3
"""A new delete horizon makes records longer, but none more than threefold."""


class LastRecord(NamedTuple):
    """The last data of an active producer; its last batch must stay, if only as a header."""

    last_offset: int | None  # None: no data of this epoch, only its marker
    producer_epoch: int


def check_crcs(chunk: BatchChunk) -> None:
    """CorruptBatch for the first batch with a wrong CRC."""
    if chunk.problem is not None:
        raise CorruptBatch(chunk.problem, chunk.end_position)
    whole = count_whole(chunk.buffer, chunk.scan.table, chunk.scan.count)
    if whole < chunk.scan.count:
        raise CorruptBatch("wrong CRC", chunk.start + chunk.position(whole))


def classify_batches(chunk: BatchChunk, transactions: CleanedTransactions) -> bytes | bytearray:
    """A Verdict for each batch of a chunk, which follows the last one that `transactions` processed."""
    attributes = chunk.column(BatchColumn.ATTRIBUTES)
    if not any(bits & _ANY_TROUBLE for bits in set(attributes)):
        return bytes(len(attributes))
    verdicts = bytearray(len(attributes))
    for index, bits in enumerate(attributes):
        if bits & _ANY_TROUBLE:
            verdicts[index] = _classify(chunk, index, bits, transactions)
    return verdicts


def _classify(chunk: BatchChunk, index: int, bits: int, transactions: CleanedTransactions) -> Verdict:
    producer_id = chunk.scan.field(index, BatchColumn.PRODUCER_ID)
    last_offset = chunk.scan.field(index, BatchColumn.LAST_OFFSET)
    if bits & CONTROL_FLAG:
        control_type = _control_type(chunk, index)
        if transactions.may_drop_marker(producer_id, last_offset, control_type):
            return Verdict.ALONE | Verdict.OF_EMPTY_TXN
        return Verdict.ALONE
    if bits & TRANSACTIONAL_FLAG and transactions.is_aborted(producer_id, last_offset):
        return Verdict.DISCARD
    return Verdict.ALONE if bits & CODEC_MASK else Verdict.FILTER


def _control_type(chunk: BatchChunk, index: int) -> ControlType | None:
    records = read_records(chunk.buffer, chunk.position(index), max_bytes=_MAX_MARKER_BYTES)
    return read_control_type(records[0].key) if records else None


def runs(verdicts: bytes | bytearray) -> Iterable[tuple[int, int]]:
    """Batches [first, stop) that can be processed together, or a single one if its verdict requires it."""
    first = 0
    for index, verdict in enumerate(verdicts) if any(verdicts) else ():
        if verdict & ALONE:
            if first < index:
                yield first, index
            yield index, index + 1
            first = index + 1
    if first < len(verdicts):
        yield first, len(verdicts)


class BatchFilter:
    """Filters the batches of a log, passed in order; used by one thread, for one run."""

    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: CleanedTransactions,
        last_records: Mapping[int, LastRecord],
        *,
        now_ms: int,
        delete_retention_ms: int,
        max_decompressed_bytes: int,
        statistics: CleanerStatistics,
    ) -> None:
        self.offset_map = offset_map
        self.transactions = transactions
        self.now_ms = now_ms
        self.delete_horizon_ms = now_ms + delete_retention_ms
        self.max_decompressed_bytes = max_decompressed_bytes
        self.statistics = statistics
        self._producer_offsets = [
            one.last_offset for one in last_records.values() if one.last_offset is not None
        ]
        self._epochs_of_markers = {
            producer_id: one.producer_epoch
            for producer_id, one in last_records.items()
            if one.last_offset is None
        }
        self.keep_end(-1)
        self._table = RecordTable()
        self._out = memoryview(bytearray())
        self._changed = memoryview(b"")
        self._counters = memoryview(bytearray(8 * len(Counter))).cast("q")

    def keep_end(self, last_offset: int) -> None:
        """From now on the batch with this last offset stays, if only as a header."""
        self._kept_offsets = memoryview(array("q", sorted({*self._producer_offsets, last_offset})))
        self._kept_set = set(self._kept_offsets)

    def filter(self, chunk: BatchChunk) -> memoryview:
        """What is left of a chunk; valid until the next call. CorruptBatch if a batch is damaged."""
        verdicts = classify_batches(chunk, self.transactions)
        at = 0
        for first, stop in runs(verdicts):
            if verdicts[first] & ALONE:
                left = self._filter_alone(chunk, first, verdicts[first] & _OF_EMPTY_TXN != 0)
                self._make_room(at, len(left))
                self._out[at : at + len(left)] = left
                at += len(left)
            else:
                at = self._filter_run(chunk, first, stop, verdicts, at)
        return self._out[:at]

    def _make_room(self, at: int, size: int) -> None:
        """Have space for `size` bytes behind those that are written."""
        if at + size > len(self._out):
            larger = memoryview(new_bytearray(2 * (at + size)))
            larger[:at] = self._out[:at]
            self._out = larger

    # Uncompressed batches, many at a time

    def _filter_run(
        self, chunk: BatchChunk, first: int, stop: int, verdicts: bytes | bytearray, at: int
    ) -> int:
        run_bytes = (
            chunk.position(stop - 1)
            + chunk.scan.field(stop - 1, BatchColumn.SIZE_IN_BYTES)
            - chunk.position(first)
        )
        self._make_room(at, _ROOM * run_bytes)
        if len(self._changed) < 2 * (stop - first):
            self._changed = memoryview(new_bytearray(16 * (stop - first))).cast("q")
        batches = chunk.scan.table
        self.offset_map.digest_batches(self._table, chunk.buffer, batches, first, stop, verdicts, self.now_ms)
        self.statistics.records_without_key += self.offset_map.choose_survivors(self._table)
        for counter in Counter:
            self._counters[counter] = 0
        at = copy_kernels.write_survivors(
            chunk.buffer,
            batches,
            first,
            stop,
            verdicts,
            self._table.rows,
            self._kept_offsets,
            self.offset_map.latest_offset,
            self.delete_horizon_ms,
            self._out,
            at,
            self._changed,
            self._counters,
        )
        self._renew_crcs(self._counters[Counter.BATCHES_CHANGED])
        self.statistics.records_read += self._counters[Counter.RECORDS_READ]
        self.statistics.records_written += self._counters[Counter.RECORDS_KEPT]
        return at

    def _renew_crcs(self, count: int) -> None:
        changed = self._changed[: 2 * count].tolist()
        for position, size in zip(changed[::2], changed[1::2], strict=True):
            renew_crc(self._out, position, size)

    # Compressed batches and markers, one at a time

    def _filter_alone(self, chunk: BatchChunk, index: int, of_empty_txn: bool) -> Buffer:
        header, position = chunk.header(index), chunk.position(index)
        self.statistics.records_read += header.record_count
        is_past_horizon = header.has_delete_horizon and header.base_timestamp_ms <= self.now_ms
        if header.is_control and of_empty_txn and is_past_horizon:
            return self._header_alone(header)
        records = self._choose_alone(chunk.buffer, position, header, is_past_horizon)
        kept, has_tombstone, latest_delta_ms = copy_kernels.sum_up(self._table.rows, self._table.count)
        self.statistics.records_written += kept
        if kept == 0:
            return self._header_alone(header)
        sets_horizon = (
            (has_tombstone or of_empty_txn)
            and not header.has_delete_horizon
            and header.last_offset <= self.offset_map.latest_offset
        )
        if kept == header.record_count and not sets_horizon:
            return chunk.buffer[position : position + header.size_in_bytes]
        return self._rebuild_alone(header, records, kept, latest_delta_ms, sets_horizon)

    def _choose_alone(
        self, buffer: memoryview, position: int, header: BatchHeader, is_past_horizon: bool
    ) -> memoryview:
        """Fill the table from one batch and mark the survivors, all of a marker; its plain records."""
        plain = plain_records(buffer, position, header, self.max_decompressed_bytes)
        records = memoryview(plain.buffer)[plain.start : plain.end]
        self.offset_map.digest_records(
            self._table,
            records,
            header.record_count,
            header.base_offset,
            header.last_offset,
            tombstones_expired=is_past_horizon,
        )
        everything = -1 if header.is_control else None
        self.statistics.records_without_key += self.offset_map.choose_survivors(self._table, everything)
        return records

    def _rebuild_alone(
        self,
        header: BatchHeader,
        records: memoryview,
        kept: int,
        latest_delta_ms: int,
        sets_horizon: bool,
    ) -> bytearray:
        base_timestamp_ms = self.delete_horizon_ms if sets_horizon else header.base_timestamp_ms
        shift_ms = wrapping_difference(header.base_timestamp_ms, base_timestamp_ms)
        batch = new_bytearray(HEADER_SIZE + _ROOM * len(records))
        rows, count = self._table.rows, self._table.count
        end = copy_kernels.copy_survivors(records, rows, count, shift_ms, batch, HEADER_SIZE)
        del batch[end:]
        max_timestamp_ms = wrapping_sum(header.base_timestamp_ms, latest_delta_ms)
        if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            max_timestamp_ms = header.max_timestamp_ms
        return _rebuilt(
            header,
            batch,
            kept,
            attributes=header.attributes | (DELETE_HORIZON_FLAG if sets_horizon else 0),
            base_timestamp_ms=base_timestamp_ms,
            max_timestamp_ms=max_timestamp_ms,
        )

    def _header_alone(self, header: BatchHeader) -> Buffer:
        """An emptied batch if it must stay, else nothing."""
        is_last_marker = (
            header.is_control and self._epochs_of_markers.get(header.producer_id) == header.producer_epoch
        )
        if header.last_offset not in self._kept_set and not is_last_marker:
            return b""
        return _rebuilt(
            header,
            bytearray(HEADER_SIZE),
            0,
            attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_FLAG),
            base_timestamp_ms=NO_TIMESTAMP,
            max_timestamp_ms=header.max_timestamp_ms,
        )


def _rebuilt(
    header: BatchHeader,
    batch: bytearray,
    record_count: int,
    *,
    attributes: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
) -> bytearray:
    """A batch in place of another: same offsets, producer, sequences. `batch` has space for the header."""
    return finish_batch(
        batch,
        codec=Codec(attributes & CODEC_MASK),
        level=None,
        attributes=attributes & ~CODEC_MASK,
        base_offset=header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        last_offset_delta=header.last_offset_delta,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=record_count,
    )
