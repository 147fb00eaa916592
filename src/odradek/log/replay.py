"""Bring producer state up to date from the batches of a log: after a restart or a truncation."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.log.batch_chunks import BatchChunk, batch_chunks
from odradek.log.producers import BATCHES_KEPT, Marker, ProducerStates
from odradek.log.segment import Segment
from odradek.log.txn_index import AbortedTxn, aborted_txn
from odradek.records.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from odradek.records.control import ControlType, read_control_type, read_end_transaction_marker
from odradek.records.layout import BatchColumn
from odradek.records.record import read_records

_MAX_MARKER_BYTES = 4096


def replay(segments: Iterable[Segment], producers: ProducerStates, end_offset: int) -> None:
    """Apply every batch from the state's end offset up to `end_offset`; may block."""
    for segment in segments:
        position = segment.position_of(producers.end_offset) if segment.size else None
        if position is None:
            continue
        for chunk in batch_chunks(segment.log, position):
            last_offsets = chunk.column(BatchColumn.LAST_OFFSET)
            count = sum(1 for last_offset in last_offsets if last_offset < end_offset)
            replay_chunk(chunk, count, producers)
            if count < len(last_offsets):
                return


def replay_chunk(chunk: BatchChunk, count: int, producers: ProducerStates) -> list[AbortedTxn]:
    """Apply the first `count` batches of a chunk; the transactions that they aborted."""
    if count == 0:
        return []
    producer_ids = chunk.column(BatchColumn.PRODUCER_ID)[:count]
    aborted: list[AbortedTxn] = []
    if max(producer_ids) >= 0:
        for index in _indexes_that_matter(chunk, producer_ids):
            _apply(chunk, index, producers, aborted)
    producers.end_offset = chunk.scan.field(count - 1, BatchColumn.LAST_OFFSET) + 1
    return aborted


def _indexes_that_matter(chunk: BatchChunk, producer_ids: list[int]) -> Iterable[int]:
    """All batches with a producer where transactions are about; else only the last five of each producer."""
    attributes = chunk.column(BatchColumn.ATTRIBUTES)[: len(producer_ids)]
    if any(bits & (TRANSACTIONAL_FLAG | CONTROL_FLAG) for bits in attributes):
        return [index for index, producer_id in enumerate(producer_ids) if producer_id >= 0]
    last_ones: dict[int, list[int]] = {}
    for index in range(len(producer_ids) - 1, -1, -1):
        found = last_ones.setdefault(producer_ids[index], [])
        if len(found) < BATCHES_KEPT:
            found.append(index)
    last_ones.pop(-1, None)
    return sorted(index for found in last_ones.values() for index in found)


def _apply(chunk: BatchChunk, index: int, producers: ProducerStates, aborted: list[AbortedTxn]) -> None:
    header = chunk.header(index)
    marker = marker_of(chunk.buffer, chunk.position(index)) if header.is_control else None
    completed = producers.apply(header, marker)
    if completed is not None and completed.is_aborted:
        aborted.append(aborted_txn(completed))


def marker_of(batch: bytes | bytearray | memoryview, position: int = 0) -> Marker | None:
    """The end-of-transaction marker in a control batch; None for another type, or an emptied batch."""
    records = read_records(batch, position, max_bytes=_MAX_MARKER_BYTES)
    if not records or read_control_type(records[0].key) not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    control_type, coordinator_epoch = read_end_transaction_marker(records[0])
    return Marker(control_type is ControlType.COMMIT, coordinator_epoch, records[0].timestamp_ms)
