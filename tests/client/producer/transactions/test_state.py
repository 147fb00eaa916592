"""Which call may follow which in the transactions of a producer, and what a failure leaves possible."""

from __future__ import annotations

import pytest

from odradek.client.producer.batches.idempotence import ProducerId
from odradek.client.producer.transactions.errors import (
    AbortableTransactionError,
    FatalTransactionError,
    TransactionStateError,
)
from odradek.client.producer.transactions.state import Phase, ProducerTransactionState
from odradek.common.ids import TopicPartition

PARTITION = TopicPartition("orders", 0)


def an_open_transaction() -> ProducerTransactionState:
    state = ProducerTransactionState()
    state.initialized(ProducerId(7, 0))
    state.begun()
    return state


def test_a_call_out_of_order_names_itself_and_the_present_state() -> None:
    state = ProducerTransactionState()
    with pytest.raises(
        TransactionStateError, match=r"begin_transaction: init_transactions\(\) was not called"
    ):
        state.require("begin_transaction", Phase.READY)


def test_an_abortable_error_is_raised_until_the_abort_and_forgotten_after_it() -> None:
    state, error = an_open_transaction(), AbortableTransactionError("a batch failed")
    assert state.failed(error)
    assert not state.may_send
    with pytest.raises(AbortableTransactionError, match="a batch failed"):
        state.require("commit_transaction", Phase.IN_TRANSACTION)
    state.require("abort_transaction", Phase.ABORTABLE_ERROR)
    state.ended(ProducerId(7, 1))
    state.require("begin_transaction", Phase.READY)
    assert state.error is None
    assert state.producer == ProducerId(7, 1)


def test_a_fatal_error_is_final() -> None:
    state = an_open_transaction()
    assert state.failed(FatalTransactionError("fenced"))
    assert not state.failed(AbortableTransactionError("later"))
    for phase in (Phase.READY, Phase.ABORTABLE_ERROR):
        with pytest.raises(FatalTransactionError, match="fenced"):
            state.require("anything", phase)


def test_a_failure_outside_of_a_transaction_changes_nothing() -> None:
    state = ProducerTransactionState()
    state.initialized(ProducerId(7, 0))
    assert not state.failed(AbortableTransactionError("of a transaction that is over"))
    assert state.phase is Phase.READY


def test_v1_sends_to_a_partition_only_after_it_was_added() -> None:
    state = an_open_transaction()
    assert not state.is_in_transaction(PARTITION, uses_v2=False)
    assert not state.is_started
    assert state.pending == {PARTITION}
    state.added({PARTITION})
    assert state.is_in_transaction(PARTITION, uses_v2=False)
    assert state.is_started
    assert not state.pending


def test_v2_sends_at_once_and_has_something_to_end() -> None:
    state = an_open_transaction()
    assert state.is_in_transaction(PARTITION, uses_v2=True)
    assert state.is_started
    assert not state.pending


def test_a_failure_in_the_transaction_of_another_process_cannot_be_aborted_here() -> None:
    state = ProducerTransactionState()
    state.joined(ProducerId(7, 0))
    assert state.failed(AbortableTransactionError("a batch failed"))
    assert not state.may_send
    with pytest.raises(AbortableTransactionError):
        state.begin_abort()
    state.require("join_transaction", Phase.JOINED_ERROR)
    state.joined(ProducerId(7, 1))
    assert state.may_send


def test_a_commit_can_be_aborted_only_while_the_coordinator_was_not_asked() -> None:
    state = an_open_transaction()
    state.phase = Phase.COMMITTING
    state.begin_abort()
    assert state.phase is Phase.ABORTING

    state = an_open_transaction()
    state.phase, state.is_end_sent = Phase.COMMITTING, True
    with pytest.raises(TransactionStateError, match="a commit was begun"):
        state.begin_abort()
    state.ended(ProducerId(7, 0))
    assert not state.is_end_sent


def test_the_next_transaction_begins_without_partitions() -> None:
    state = an_open_transaction()
    state.added({PARTITION})
    state.ended(ProducerId(7, 0))
    state.begun()
    assert not state.is_started
    assert not state.is_in_transaction(PARTITION, uses_v2=False)
