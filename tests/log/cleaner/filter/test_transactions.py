from __future__ import annotations

from odradek.log.cleaner.filter.transactions import CleanedTransactions
from odradek.log.segment.txn_index import AbortedTxn
from odradek.records.control import ControlType

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


def test_batches_of_an_aborted_transaction_are_distinguished_from_others() -> None:
    transactions = CleanedTransactions([AbortedTxn(7, 10, 20, 21)])

    assert not transactions.is_aborted(7, 9)
    assert not transactions.is_aborted(8, 15)
    assert transactions.is_aborted(7, 15)


def test_the_next_transaction_of_a_producer_is_another() -> None:
    transactions = CleanedTransactions([AbortedTxn(7, 10, 20, 21), AbortedTxn(7, 40, 50, 51)])

    assert transactions.is_aborted(7, 15)
    assert not transactions.may_drop_marker(7, 20, ABORT)
    assert not transactions.is_aborted(7, 30)
    assert not transactions.may_drop_marker(7, 31, COMMIT)
    assert transactions.is_aborted(7, 45)


def test_a_transaction_whose_marker_is_gone_does_not_swallow_the_next() -> None:
    transactions = CleanedTransactions([AbortedTxn(7, 10, 20, 21), AbortedTxn(7, 40, 50, 51)])

    assert not transactions.is_aborted(7, 30)
    assert transactions.is_aborted(7, 45)


def test_a_marker_stays_while_its_batches_do() -> None:
    aborted = AbortedTxn(7, 10, 20, 21)
    with_batches, without = CleanedTransactions([aborted]), CleanedTransactions([aborted])
    with_batches.is_aborted(7, 12)
    with_batches.is_aborted(8, 13)

    assert not with_batches.may_drop_marker(7, 20, ABORT)
    assert not with_batches.may_drop_marker(8, 21, COMMIT)
    assert without.may_drop_marker(7, 20, ABORT)
    assert without.may_drop_marker(8, 21, COMMIT)


def test_the_index_keeps_the_transactions_whose_marker_is_needed() -> None:
    aborted = [AbortedTxn(7, 10, 20, 21), AbortedTxn(8, 11, 19, 20)]
    transactions = CleanedTransactions(aborted)
    transactions.is_aborted(7, 12)

    transactions.may_drop_marker(8, 19, ABORT)
    transactions.may_drop_marker(7, 20, ABORT)

    assert transactions.take_kept_aborted() == [aborted[0]]
    assert transactions.take_kept_aborted() == []


def test_an_emptied_marker_may_go_and_an_unknown_one_stays() -> None:
    transactions = CleanedTransactions()

    assert transactions.may_drop_marker(7, 3, None)
    assert not transactions.may_drop_marker(7, 4, ControlType.LEADER_CHANGE)
