"""Bring producer state up to date from the batches of a log: after a restart or a truncation."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.log.producers.producer_states import BATCHES_KEPT, Marker, ProducerStates
from odradek.log.segment.batch_chunks import BatchChunk, batch_chunks
from odradek.log.segment.segment import Segment
from odradek.log.segment.txn_index import AbortedTxn, aborted_txn
from odradek.records.batch import CONTROL_FLAG, NO_PRODUCER_ID, TRANSACTIONAL_FLAG, BatchHeader, Buffer
from odradek.records.control import ControlType, read_control_type, read_end_transaction_marker
from odradek.records.kernels.layout import BatchColumn
from odradek.records.record import read_records

_MAX_MARKER_BYTES = 4096


def replay(segments: Iterable[Segment], producers: ProducerStates, end_offset: int) -> None:
    """Apply every batch from the state's end offset up to `end_offset`; may block."""
    running = Replay(producers)
    for segment in segments:
        position = segment.position_of(producers.end_offset) if segment.size else None
        if position is None:
            continue
        for chunk in batch_chunks(segment.log, position):
            last_offsets = chunk.column(BatchColumn.LAST_OFFSET)
            count = sum(1 for last_offset in last_offsets if last_offset < end_offset)
            running.apply(chunk, count)
            if count < len(last_offsets):
                running.finish()
                return
    running.finish()


def replay_chunk(chunk: BatchChunk, count: int, producers: ProducerStates) -> list[AbortedTxn]:
    """Apply the first `count` batches of a chunk; the transactions that they aborted."""
    running = Replay(producers)
    aborted = running.apply(chunk, count)
    running.finish()
    return aborted


class Replay:
    """Applies chunk after chunk to producer state, and reads only the batches that matter.

    Without transactions, only the last five batches of each producer matter: they wait until
    something needs the state, or the end.
    """

    __slots__ = ("_waiting", "producers")

    def __init__(self, producers: ProducerStates) -> None:
        self.producers = producers
        self._waiting: dict[int, list[BatchHeader]] = {}

    def apply(self, chunk: BatchChunk, count: int) -> list[AbortedTxn]:
        """Apply the first `count` batches; returns the transactions that they aborted."""
        if count == 0:
            return []
        aborted: list[AbortedTxn] = []
        producer_ids = chunk.column(BatchColumn.PRODUCER_ID)[:count]
        if max(producer_ids) >= 0:
            attributes = set(chunk.column(BatchColumn.ATTRIBUTES)[:count])
            if any(bits & (TRANSACTIONAL_FLAG | CONTROL_FLAG) for bits in attributes):
                self.finish()
                for index, producer_id in enumerate(producer_ids):
                    if producer_id >= 0:
                        _apply(chunk, index, self.producers, aborted)
            else:
                self._keep_last_ones(chunk, producer_ids)
        self.producers.end_offset = chunk.scan.field(count - 1, BatchColumn.LAST_OFFSET) + 1
        return aborted

    def _keep_last_ones(self, chunk: BatchChunk, producer_ids: list[int]) -> None:
        count = len(producer_ids)
        is_of_one = producer_ids.count(producer_ids[0]) == count
        last_ones: dict[int, list[BatchHeader]] = {}
        for index in range(count - 1, max(count - BATCHES_KEPT, 0) - 1 if is_of_one else -1, -1):
            found = last_ones.setdefault(producer_ids[index], [])
            if len(found) < BATCHES_KEPT:
                found.append(chunk.header(index))
        last_ones.pop(NO_PRODUCER_ID, None)
        for producer_id, headers in last_ones.items():
            earlier = self._waiting.get(producer_id, [])
            self._waiting[producer_id] = (earlier + headers[::-1])[-BATCHES_KEPT:]

    def finish(self) -> None:
        """Apply what waits."""
        end_offset = self.producers.end_offset
        for headers in self._waiting.values():
            for header in headers:
                self.producers.apply(header)
        self._waiting.clear()
        self.producers.end_offset = end_offset


def _apply(chunk: BatchChunk, index: int, producers: ProducerStates, aborted: list[AbortedTxn]) -> None:
    header = chunk.header(index)
    marker = marker_of(chunk.buffer, chunk.position(index)) if header.is_control else None
    completed = producers.apply(header, marker)
    if completed is not None and completed.is_aborted:
        aborted.append(aborted_txn(completed))


def markers_of(payload: Buffer, headers: Iterable[BatchHeader]) -> list[Marker | None]:
    """For each of the batches side by side in `payload` its marker, None where it has none."""
    markers: list[Marker | None] = []
    position = 0
    for header in headers:
        is_marker = header.is_control and header.has_producer_id
        markers.append(marker_of(payload, position) if is_marker else None)
        position += header.size_in_bytes
    return markers


def marker_of(batch: Buffer, position: int = 0) -> Marker | None:
    """The end-of-transaction marker in a control batch; None for another type, or an emptied batch."""
    records = read_records(batch, position, max_bytes=_MAX_MARKER_BYTES)
    if not records or read_control_type(records[0].key) not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    control_type, coordinator_epoch = read_end_transaction_marker(records[0])
    return Marker(control_type is ControlType.COMMIT, coordinator_epoch, records[0].timestamp_ms)
