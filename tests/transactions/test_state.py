from __future__ import annotations

from dataclasses import replace

import pytest

from odradek.common.ids import TopicPartition
from odradek.coordinator.result import Result, StartTimer
from odradek.records.builder import build_batch_from_columns
from odradek.transactions.state import CHANGES_PER_STEP, ExpiryTimer, TimeoutTimer
from odradek.transactions.transaction import MAX_EPOCH, ProducerIdAndEpoch, TransactionState
from transactions.given import PAYMENTS, Coordinator


@pytest.mark.parametrize("transaction_version", [0, 1, 2])
def test_the_state_survives_a_replay(transaction_version: int) -> None:
    coordinator = Coordinator(transaction_version)
    empty = coordinator.producer(name="empty")
    open_one = coordinator.producer(name="open")
    coordinator.add(open_one, PAYMENTS, name="open")
    done = coordinator.producer(name="done")
    coordinator.add(done, name="done")
    coordinator.end(done, name="done")
    coordinator.complete("done")

    replayed = coordinator.restarted().state.transactions
    assert {name: one.state.label for name, one in replayed.items()} == {
        "empty": "Empty",
        "open": "Ongoing",
        "done": "CompleteCommit",
    }
    assert replayed["empty"].producer_id == empty.producer_id
    assert replayed["open"].partitions == {PAYMENTS}
    assert replayed["open"].start_ms == coordinator.now_ms


@pytest.mark.parametrize("commit", [True, False])
def test_a_decided_transaction_is_finished_after_a_restart(commit: bool) -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    coordinator.add(producer)
    coordinator.end(producer, commit=commit)

    other = coordinator.restarted()
    (pending,) = other.prepared
    assert (pending.is_commit, pending.partitions) == (commit, coordinator.known().partitions)
    other.complete()
    label = "CompleteCommit" if commit else "CompleteAbort"
    assert other.known().state.label == label


def test_a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_fenced() -> None:
    coordinator = Coordinator(abort_check_interval_ms=77)
    producer = coordinator.producer(timeout_ms=500)
    coordinator.add(producer)
    coordinator.now_ms += 500
    coordinator.apply(coordinator.state.on_timer(TimeoutTimer(), coordinator.now_ms))
    assert coordinator.known().state is TransactionState.ONGOING

    coordinator.now_ms += 1
    result = coordinator.state.on_timer(TimeoutTimer(), coordinator.now_ms)
    assert result.timers == (StartTimer(TimeoutTimer(), 77),)
    coordinator.apply(result)
    assert coordinator.known().state is TransactionState.PREPARE_ABORT
    assert coordinator.known().producer_epoch == producer.producer_epoch + 1
    assert coordinator.prepared == [coordinator.known()]


def test_time_outs_are_checked_as_soon_as_another_broker_is_the_coordinator() -> None:
    coordinator = Coordinator()
    coordinator.add(coordinator.producer(timeout_ms=500))
    coordinator.now_ms += 501
    other = coordinator.restarted()
    due = [timer for timer in other.state.on_loaded(other.now_ms).timers if timer.delay_ms == 0]
    for timer in due:
        other.apply(other.state.on_timer(timer.key, other.now_ms))
    assert other.known().state is TransactionState.PREPARE_ABORT


def test_a_transaction_in_the_highest_epoch_holds_up_no_other_one_that_has_timed_out() -> None:
    coordinator = Coordinator(2)
    for name in ("highest", "other"):
        coordinator.add(coordinator.producer(timeout_ms=500, name=name), name=name, client_version=2)
    known = coordinator.known("highest")
    coordinator.state.transactions["highest"] = replace(known, producer_epoch=MAX_EPOCH)
    coordinator.now_ms += 501
    coordinator.apply(coordinator.state.on_timer(TimeoutTimer(), coordinator.now_ms))
    assert {one.state.label for one in coordinator.state.transactions.values()} == {"PrepareAbort"}
    assert coordinator.known("highest").client_version == 0  # a marker of v2 would need a higher epoch


def test_very_many_timed_out_transactions_are_aborted_step_by_step() -> None:
    coordinator = Coordinator()
    for number in range(CHANGES_PER_STEP + 1):
        name = f"t{number}"
        coordinator.add(coordinator.producer(timeout_ms=1, name=name), name=name)
    coordinator.now_ms += 10
    first = coordinator.state.on_timer(TimeoutTimer(), coordinator.now_ms)
    assert (len(first.records), first.timers) == (CHANGES_PER_STEP, (StartTimer(TimeoutTimer(), 0),))
    coordinator.apply(first)
    second = coordinator.state.on_timer(TimeoutTimer(), coordinator.now_ms)
    assert len(second.records) == 1


@pytest.mark.parametrize("transaction_version", [0, 2])
def test_a_batch_of_aborts_is_never_larger_than_the_log_takes(transaction_version: int) -> None:
    coordinator = Coordinator(transaction_version, max_batch_bytes=5_000)
    partitions = [TopicPartition("orders", index) for index in range(300)]
    for number in range(20):
        name = f"t{number}"
        coordinator.add(coordinator.producer(timeout_ms=1, name=name), *partitions, name=name)
    coordinator.now_ms += 10
    sizes = []
    for key in [TimeoutTimer()] * 20:
        result = coordinator.state.on_timer(key, coordinator.now_ms)
        sizes.append(batch_bytes(result))
        coordinator.apply(result)
        if result.timers != (StartTimer(key, 0),):
            break
    assert {one.state.label for one in coordinator.state.transactions.values()} == {"PrepareAbort"}
    assert max(sizes) <= 5_000
    assert len(sizes) == 7  # as many as fit: three in each batch


def test_an_abort_that_no_batch_can_hold_keeps_no_other_one_waiting() -> None:
    coordinator = Coordinator(max_batch_bytes=1_000)
    partitions = [TopicPartition("orders", index) for index in range(300)]
    coordinator.add(coordinator.producer(timeout_ms=1, name="huge"), *partitions, name="huge")
    coordinator.add(coordinator.producer(timeout_ms=1, name="other"), name="other")
    coordinator.now_ms += 10
    coordinator.apply(coordinator.state.on_timer(TimeoutTimer(), coordinator.now_ms))
    states = {name: one.state.label for name, one in coordinator.state.transactions.items()}
    assert states == {"huge": "Ongoing", "other": "PrepareAbort"}


def test_a_batch_of_expired_ids_is_never_larger_than_the_log_takes() -> None:
    coordinator = Coordinator(max_batch_bytes=1_000, expiration_ms=1)
    for number in range(20):
        coordinator.producer(name=f"{number:0200}")
    coordinator.now_ms += 10
    while coordinator.state.transactions:
        result = coordinator.state.on_timer(ExpiryTimer(), coordinator.now_ms)
        assert 0 < batch_bytes(result) <= 1_000
        coordinator.apply(result)


def batch_bytes(result: Result[None]) -> int:
    keys, values = zip(*result.records, strict=True)
    return len(build_batch_from_columns(list(keys), list(values), [1] * len(keys)))


def test_an_unused_id_expires_unless_its_transaction_is_undecided() -> None:
    coordinator = Coordinator(expiration_ms=1000)
    coordinator.producer(name="idle")
    busy = coordinator.producer(name="busy")
    coordinator.add(busy, name="busy")
    coordinator.now_ms += 999
    coordinator.apply(coordinator.state.on_timer(ExpiryTimer(), coordinator.now_ms))
    assert set(coordinator.state.transactions) == {"idle", "busy"}
    coordinator.now_ms += 1
    coordinator.apply(coordinator.state.on_timer(ExpiryTimer(), coordinator.now_ms))
    assert set(coordinator.state.transactions) == {"busy"}
    assert set(coordinator.restarted().state.transactions) == {"busy"}
    coordinator.add(ProducerIdAndEpoch(*busy), name="busy")


def test_ends_are_counted_when_they_are_decided_and_not_when_they_are_loaded() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    for commit in (True, False, True):
        coordinator.add(producer)
        coordinator.end(producer, commit=commit)
        coordinator.complete()
    coordinator.add(producer)
    coordinator.end(producer)
    assert (coordinator.counters.committed, coordinator.counters.aborted) == (3, 1)
    assert coordinator.restarted().counters.committed == 0
