from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.transactions import operations
from odradek.transactions.operations import PartitionsRequest
from odradek.transactions.state import TimeoutTimer
from odradek.transactions.transaction import (
    LAST_CLIENT_EPOCH,
    MAX_EPOCH,
    ProducerIdAndEpoch,
    TransactionState,
)
from transactions.given import ORDERS, PAYMENTS, TIMEOUT_MS, Coordinator

V1, V2 = 0, 2


def error_of(call: object, *given: object, **named: object) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        call(*given, **named)  # type: ignore[operator]
    return raised.value.error_code


def test_each_initialization_begins_the_next_epoch() -> None:
    coordinator = Coordinator()
    assert coordinator.producer() == (101, 0)
    assert coordinator.producer() == (101, 1)
    assert coordinator.producer(name="other") == (102, 0)


def test_a_timeout_beyond_the_maximum_is_refused() -> None:
    coordinator = Coordinator(max_timeout_ms=1000)
    assert error_of(coordinator.init, timeout_ms=1001) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert error_of(coordinator.init, timeout_ms=0) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert coordinator.producer(timeout_ms=1000) == (101, 0)


def test_a_commit_goes_through_its_states() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    coordinator.add(producer, ORDERS)
    coordinator.add(producer, PAYMENTS)
    assert coordinator.known().partitions == {ORDERS, PAYMENTS}

    coordinator.end(producer)
    assert coordinator.known().state is TransactionState.PREPARE_COMMIT
    assert coordinator.prepared == [coordinator.known()]
    assert error_of(coordinator.add, producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert error_of(coordinator.end, producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert error_of(coordinator.init) is ErrorCode.CONCURRENT_TRANSACTIONS

    coordinator.complete()
    assert coordinator.known().state is TransactionState.COMPLETE_COMMIT
    assert coordinator.known().partitions == frozenset()
    coordinator.add(producer, ORDERS)
    assert coordinator.known().state is TransactionState.ONGOING


def test_a_partition_that_was_added_before_writes_nothing() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    coordinator.add(producer, ORDERS)
    written = len(coordinator.records)
    coordinator.add(producer, ORDERS)
    assert len(coordinator.records) == written


def test_a_producer_of_an_older_epoch_is_fenced() -> None:
    coordinator = Coordinator()
    zombie = coordinator.producer()
    coordinator.add(zombie)
    assert coordinator.init().error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.known().state is TransactionState.PREPARE_ABORT
    coordinator.complete()
    heir = coordinator.producer()

    assert heir.producer_epoch > zombie.producer_epoch + 1
    assert error_of(coordinator.add, zombie) is ErrorCode.PRODUCER_FENCED
    for version in (V1, V2):
        assert error_of(coordinator.end, zombie, client_version=version) is ErrorCode.PRODUCER_FENCED
    coordinator.add(heir)


def test_another_producer_id_or_an_unknown_id_has_no_mapping() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    stranger = ProducerIdAndEpoch(7, 0)
    for version in (V1, V2):
        assert (
            error_of(coordinator.end, stranger, client_version=version)
            is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        )
        assert (
            error_of(coordinator.end, producer, client_version=version, name="absent")
            is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        )
    assert error_of(coordinator.add, stranger) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert error_of(coordinator.add, producer, name="absent") is ErrorCode.INVALID_PRODUCER_ID_MAPPING


# Continuing after an error (KIP-360)


def test_a_producer_continues_with_its_own_epoch_and_may_repeat_that() -> None:
    coordinator = Coordinator()
    first = coordinator.producer()
    second = coordinator.producer(expected=first)
    assert second == (first.producer_id, first.producer_epoch + 1)
    assert coordinator.producer(expected=first) == second
    assert error_of(coordinator.init, ProducerIdAndEpoch(first.producer_id, 7)) is ErrorCode.PRODUCER_FENCED
    assert error_of(coordinator.init, ProducerIdAndEpoch(9, 0)) is ErrorCode.PRODUCER_FENCED


def test_a_new_producer_fences_one_that_would_continue() -> None:
    coordinator = Coordinator()
    first = coordinator.producer()
    coordinator.producer()
    assert error_of(coordinator.init, first) is ErrorCode.PRODUCER_FENCED


def test_with_v2_a_producer_continues_over_its_own_open_transaction() -> None:
    coordinator = Coordinator(V2)
    first = coordinator.producer()
    coordinator.add(first, client_version=V2)
    assert coordinator.init(first).error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.known().state is TransactionState.PREPARE_ABORT
    coordinator.complete()

    second = coordinator.producer(expected=first)
    assert second == (first.producer_id, first.producer_epoch + 1)
    assert coordinator.producer(expected=first) == second
    assert error_of(coordinator.end, first, client_version=V2) is ErrorCode.PRODUCER_FENCED
    coordinator.add(second, client_version=V2)


def test_with_v1_a_producer_that_continues_over_its_open_transaction_is_fenced_as_by_kafka_3_9() -> None:
    coordinator = Coordinator(V1)
    first = coordinator.producer()
    coordinator.add(first)
    assert coordinator.init(first).error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    coordinator.complete()
    assert error_of(coordinator.init, first) is ErrorCode.PRODUCER_FENCED


def exhausted(coordinator: Coordinator) -> ProducerIdAndEpoch:
    """A producer with the last epoch that a client may have."""
    coordinator.producer()
    known = coordinator.known()
    coordinator.state.transactions["t"] = replace(known, producer_epoch=LAST_CLIENT_EPOCH)
    return ProducerIdAndEpoch(known.producer_id, LAST_CLIENT_EPOCH)


def test_a_used_up_producer_id_is_replaced() -> None:
    coordinator = Coordinator()
    last = exhausted(coordinator)
    renewed = coordinator.producer(expected=last)
    assert renewed == (102, 0)
    # The response may have been lost.
    assert coordinator.producer(expected=last) == renewed
    assert coordinator.producer() == (102, 1)


@pytest.mark.parametrize("commit", [True, False])
def test_a_v2_transaction_that_uses_up_its_producer_id_returns_the_next_one(commit: bool) -> None:
    coordinator = Coordinator(V2)
    last = exhausted(coordinator)
    coordinator.add(last, client_version=V2)
    following = coordinator.end(last, commit=commit, client_version=V2)
    assert following == (102, 0)
    assert error_of(coordinator.add, following, client_version=V2) is ErrorCode.CONCURRENT_TRANSACTIONS

    coordinator.complete()
    assert coordinator.known().producer_id == 102
    assert coordinator.end(last, commit=commit, client_version=V2) == following
    coordinator.add(following, client_version=V2)


def test_an_open_transaction_of_a_used_up_producer_id_can_be_fenced() -> None:
    for version in (V1, V2):
        coordinator = Coordinator(version)
        coordinator.add(exhausted(coordinator))
        coordinator.init()
        assert coordinator.known().producer_epoch == LAST_CLIENT_EPOCH + 1
        coordinator.complete()
        assert coordinator.producer() == (102, 0)


@pytest.fixture
def fenced_at_the_end() -> Coordinator:
    """A v2 transaction in the last epoch of a client, which has timed out: the epoch above is reached."""
    coordinator = Coordinator(V2)
    coordinator.add(exhausted(coordinator), client_version=V2)
    coordinator.now_ms += TIMEOUT_MS + 1
    coordinator.apply(coordinator.state.on_timer(TimeoutTimer(), coordinator.now_ms))
    assert coordinator.known().producer_epoch == MAX_EPOCH
    return coordinator


LAST = ProducerIdAndEpoch(101, LAST_CLIENT_EPOCH)


def test_the_abort_of_one_that_timed_out_in_its_last_epoch_returns_a_new_producer_id(
    fenced_at_the_end: Coordinator,
) -> None:
    coordinator = fenced_at_the_end
    late = error_of(coordinator.end, LAST, commit=False, client_version=V2)
    assert late is ErrorCode.CONCURRENT_TRANSACTIONS
    coordinator.complete()
    assert error_of(coordinator.end, LAST, client_version=V2) is ErrorCode.INVALID_TXN_STATE
    following = coordinator.end(LAST, commit=False, client_version=V2)
    assert following == (102, 0)
    assert coordinator.end(LAST, commit=False, client_version=V2) == following
    assert coordinator.restarted().end(LAST, commit=False, client_version=V2) == following
    coordinator.add(following, client_version=V2)


def test_one_that_timed_out_in_its_last_epoch_continues_with_a_new_producer_id(
    fenced_at_the_end: Coordinator,
) -> None:
    coordinator = fenced_at_the_end
    coordinator.complete()
    renewed = coordinator.producer(expected=LAST)
    assert renewed == (102, 0)
    assert coordinator.producer(expected=LAST) == renewed
    assert coordinator.producer() == (102, 1)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", [V1, V2])
def test_a_transaction_in_the_epoch_above_all_clients_can_be_ended(version: int, commit: bool) -> None:
    """As a coordinator may have left one behind that let a client have this epoch."""
    coordinator = Coordinator(V2)
    exhausted(coordinator)
    known = replace(coordinator.known(), producer_epoch=MAX_EPOCH)
    coordinator.state.transactions["t"] = known
    producer = ProducerIdAndEpoch(known.producer_id, MAX_EPOCH)
    coordinator.add(producer, client_version=version)
    following = coordinator.end(producer, commit=commit, client_version=version)
    # The log takes the marker, whose epoch is that of the records, only as one of v1.
    assert (coordinator.known().producer_epoch, coordinator.known().client_version) == (MAX_EPOCH, 0)
    coordinator.complete()
    if version == V2:
        assert following == (102, 0)
        coordinator.add(following, client_version=V2)


# How a transaction is ended


def test_v1_accepts_the_same_end_again_and_no_other() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    for commit in (True, False):
        assert error_of(coordinator.end, producer, commit=commit) is ErrorCode.INVALID_TXN_STATE
        coordinator.add(producer)
        coordinator.end(producer, commit=commit)
        assert error_of(coordinator.end, producer, commit=not commit) is ErrorCode.INVALID_TXN_STATE
        coordinator.complete()
        coordinator.end(producer, commit=commit)
        assert error_of(coordinator.end, producer, commit=not commit) is ErrorCode.INVALID_TXN_STATE


def test_v2_raises_the_epoch_at_each_end_and_accepts_a_repetition() -> None:
    coordinator = Coordinator(V2)
    producer = coordinator.producer()
    coordinator.add(producer, client_version=V2)
    following = coordinator.end(producer, client_version=V2)
    assert following == (producer.producer_id, producer.producer_epoch + 1)
    assert error_of(coordinator.end, producer, client_version=V2) is ErrorCode.CONCURRENT_TRANSACTIONS

    coordinator.complete()
    assert coordinator.end(producer, client_version=V2) == following
    assert error_of(coordinator.end, producer, commit=False, client_version=V2) is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("commit", [True, False])
def test_an_empty_transaction_of_v2_is_ended_after_the_markers_of_the_one_before(commit: bool) -> None:
    coordinator = Coordinator(V2)
    producer = coordinator.producer()
    coordinator.add(producer, client_version=V2)
    following = coordinator.end(producer, commit=commit, client_version=V2)
    at_once = error_of(coordinator.end, following, commit=False, client_version=V2)
    assert at_once is ErrorCode.CONCURRENT_TRANSACTIONS

    coordinator.complete()
    after = coordinator.end(following, commit=False, client_version=V2)
    assert after == (following.producer_id, following.producer_epoch + 1)


FENCED, STATE, RAISED, SAME = "PRODUCER_FENCED", "INVALID_TXN_STATE", "raised", "same"
# state, commit, epoch before the present one -> outcome
V2_TABLE = {
    ("Empty", False, True): FENCED,
    ("Empty", False, False): RAISED,
    ("Empty", True, True): FENCED,
    ("Empty", True, False): STATE,
    ("CompleteAbort", False, True): SAME,
    ("CompleteAbort", False, False): RAISED,
    ("CompleteAbort", True, True): STATE,
    ("CompleteAbort", True, False): STATE,
    ("CompleteCommit", False, True): STATE,
    ("CompleteCommit", False, False): RAISED,
    ("CompleteCommit", True, True): SAME,
    ("CompleteCommit", True, False): STATE,
}


@pytest.mark.parametrize(
    ("state", "commit", "is_before"),
    list(product(("Empty", "CompleteAbort", "CompleteCommit"), (True, False), (True, False))),
)
def test_v2_where_nothing_is_open(state: str, commit: bool, is_before: bool) -> None:
    coordinator = Coordinator(V2)
    before = coordinator.producer()
    present = coordinator.producer()
    if state != "Empty":
        before = present
        coordinator.add(before, client_version=V2)
        present = coordinator.end(before, commit=state == "CompleteCommit", client_version=V2)
        coordinator.complete()
    producer = before if is_before else present
    expected = V2_TABLE[state, commit, is_before]

    if expected in (FENCED, STATE):
        refused = error_of(coordinator.end, producer, commit=commit, client_version=V2)
        assert refused.name == expected
        return
    following = coordinator.end(producer, commit=commit, client_version=V2)
    raised = present.producer_epoch + (1 if expected == RAISED else 0)
    assert following == (present.producer_id, raised)


def test_a_late_end_of_v2_does_not_touch_the_next_transaction() -> None:
    coordinator = Coordinator(V2)
    first = coordinator.producer()
    coordinator.add(first, client_version=V2)
    second = coordinator.end(first, client_version=V2)
    coordinator.complete()
    coordinator.add(second, client_version=V2)

    for commit in (True, False):
        late = error_of(coordinator.end, first, commit=commit, client_version=V2)
        assert late is ErrorCode.PRODUCER_FENCED
    assert coordinator.known().state is TransactionState.ONGOING


# Verification


def test_only_partitions_of_the_open_transaction_are_verified() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    asked = PartitionsRequest("t", producer, frozenset([ORDERS, PAYMENTS]))
    coordinator.add(producer, ORDERS)
    assert operations.verify_partitions(coordinator.state, asked) == {
        ORDERS: ErrorCode.NONE,
        PAYMENTS: ErrorCode.TRANSACTION_ABORTABLE,
    }

    coordinator.end(producer)
    assert error_of(operations.verify_partitions, coordinator.state, asked) is (
        ErrorCode.CONCURRENT_TRANSACTIONS
    )
    coordinator.complete()
    codes = operations.verify_partitions(coordinator.state, asked)
    assert set(codes.values()) == {ErrorCode.TRANSACTION_ABORTABLE}
    fenced = PartitionsRequest("t", ProducerIdAndEpoch(producer.producer_id, 9), frozenset([ORDERS]))
    assert error_of(operations.verify_partitions, coordinator.state, fenced) is ErrorCode.PRODUCER_FENCED


def test_a_completion_of_an_older_epoch_changes_nothing() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    coordinator.add(producer)
    coordinator.end(producer)
    late = ProducerIdAndEpoch(producer.producer_id, producer.producer_epoch - 1)
    coordinator.apply(operations.complete(coordinator.state, "t", late, 0))
    assert coordinator.known().state is TransactionState.PREPARE_COMMIT
