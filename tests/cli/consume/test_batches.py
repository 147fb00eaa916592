from __future__ import annotations

from odradek.cli.consume.batches import AbortedTransaction, read_batches
from odradek.records.builder import build_batch
from odradek.records.control import ControlType, EndTransactionMarker, build_end_transaction_marker
from odradek.records.record import Record


def a_batch(base: int, count: int, producer_id: int = -1) -> bytes:
    records = [Record(base + index, 1000, b"k", b"%d" % (base + index)) for index in range(count)]
    is_transactional = producer_id >= 0
    return bytes(
        build_batch(
            records,
            base_offset=base,
            producer_id=producer_id,
            producer_epoch=0 if is_transactional else -1,
            base_sequence=0 if is_transactional else -1,
            is_transactional=is_transactional,
        )
    )


def a_marker(offset: int, producer_id: int, kind: ControlType) -> bytes:
    marker = EndTransactionMarker(kind, 0)
    return bytes(
        build_end_transaction_marker(
            marker, producer_id=producer_id, producer_epoch=0, timestamp_ms=1000, base_offset=offset
        )
    )


def offsets(fetched: bytes, position: int, aborted: list[AbortedTransaction] | None = None) -> list[int]:
    return [
        record.offset
        for batch in read_batches(memoryview(fetched), position, aborted)
        for record in batch.records
    ]


def test_records_before_the_position_are_left_out():
    batches = list(read_batches(memoryview(a_batch(0, 5) + a_batch(5, 5)), 3, None))
    assert [record.offset for batch in batches for record in batch.records] == [3, 4, 5, 6, 7, 8, 9]
    assert batches[-1].next_offset == 10


def test_a_batch_that_was_cut_off_is_left_for_the_next_answer():
    fetched = a_batch(0, 5) + a_batch(5, 5)
    assert offsets(fetched[:-1], 0) == [0, 1, 2, 3, 4]
    assert offsets(fetched[:10], 0) == []
    assert offsets(b"", 0) == []


def test_markers_are_not_shown():
    fetched = a_batch(0, 2, producer_id=7) + a_marker(2, 7, ControlType.COMMIT) + a_batch(3, 1)
    assert offsets(fetched, 0) == [0, 1, 3]
    assert list(read_batches(memoryview(fetched), 0, None))[1].next_offset == 3


def test_aborted_records_are_shown_only_to_those_who_read_uncommitted():
    fetched = (
        a_batch(0, 2, producer_id=7)
        + a_batch(2, 1, producer_id=8)
        + a_marker(3, 7, ControlType.ABORT)
        + a_batch(4, 1, producer_id=7)
        + a_marker(5, 7, ControlType.COMMIT)
    )
    assert offsets(fetched, 0) == [0, 1, 2, 4]
    assert offsets(fetched, 0, [AbortedTransaction(7, 0)]) == [2, 4]
