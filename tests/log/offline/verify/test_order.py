from __future__ import annotations

from log.given_logs import a_batch
from odradek.log.leader_epochs import EpochEntry
from odradek.log.offline.verify.order import EpochOrder, OffsetOrder
from odradek.records.batch import BatchHeader, read_header


def header(base_offset: int, count: int = 10, epoch: int = 0) -> BatchHeader:
    return read_header(a_batch(count, base_offset=base_offset, leader_epoch=epoch))


def offsets(limit: int | None = None) -> OffsetOrder:
    order = OffsetOrder()
    order.enter_segment(100, limit)
    return order


def test_offsets_that_rise_are_in_order_and_gaps_are_counted() -> None:
    order = offsets()
    assert [order.check(header(base), at) for at, base in enumerate((100, 110, 130, 140))] == [None] * 4
    assert (order.gap_count, order.jumped, order.next_offset) == (1, False, 150)


def test_a_step_back_is_the_fault_of_a_batch_that_had_jumped_ahead() -> None:
    order = offsets()
    order.check(header(100), 0)
    order.check(header(366), 70)
    fault = order.check(header(120), 140)
    assert fault is not None
    assert fault.position == 70


def test_a_step_back_after_a_batch_in_its_place_is_its_own_fault() -> None:
    order = offsets()
    order.check(header(100), 0)
    order.check(header(110), 70)
    fault = order.check(header(100), 140)
    assert fault is not None
    assert fault.position == 140


def test_a_batch_belongs_between_the_names_of_two_segments() -> None:
    assert offsets(limit=110).check(header(100), 0) is None
    assert offsets(limit=109).check(header(100), 0) is not None
    assert offsets().check(header(99), 0) is not None


def test_epochs_change_where_the_checkpoint_says() -> None:
    order = EpochOrder([EpochEntry(0, 0), EpochEntry(3, 20)], 0)
    batches = [header(0), header(10), header(20, epoch=3), header(30, epoch=3)]
    assert [order.check(one, at) or order.compare(one) for at, one in enumerate(batches)] == [None] * 4


def test_an_epoch_that_begins_inside_of_a_batch_is_a_disagreement() -> None:
    order = EpochOrder([EpochEntry(0, 0), EpochEntry(3, 15)], 0)
    order.compare(header(0))
    assert order.compare(header(10)) == "epoch 3 would begin inside of this batch, at 15"


def test_deleted_records_have_no_epoch_in_the_checkpoint() -> None:
    order = EpochOrder([EpochEntry(3, 25)], 25)
    assert [order.compare(header(base, epoch=3)) for base in (10, 20, 30)] == [None] * 3


def test_an_epoch_of_the_last_batch_beyond_the_latest_is_a_fault_of_the_batch() -> None:
    order = EpochOrder([EpochEntry(0, 0)], 0)
    order.check(header(0), 0)
    last = header(10, epoch=64)
    order.check(last, 70)
    fault = order.check_last(last)
    assert fault is not None
    assert fault.position == 70


def test_an_epoch_that_the_checkpoint_begins_at_the_last_batch_is_a_fault_of_the_checkpoint() -> None:
    order = EpochOrder([EpochEntry(0, 0), EpochEntry(2, 10)], 0)
    order.check(header(0), 0)
    last = header(10, epoch=3)
    order.check(last, 70)
    assert order.check_last(last) is None
    assert order.compare(last) is not None


def test_without_a_checkpoint_only_the_order_is_checked() -> None:
    order = EpochOrder(None, 0)
    assert order.check(header(0, epoch=5), 0) is None
    assert order.compare(header(0, epoch=5)) is None
    assert order.check(header(10, epoch=4), 70) is not None
