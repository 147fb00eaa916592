"""Who is in sync: removal, admission, and what counts while the controller has not answered."""

from __future__ import annotations

import pytest

from odradek.common.error_codes import ErrorCode
from odradek.replication.isr import (
    IsrChange,
    after_error,
    is_current_registration,
    largest_isr,
    out_of_sync,
    proposed_change,
    smallest_isr,
)
from odradek.replication.remote_replica import RemoteReplica

MAX_LAG_MS = 30_000


def fetched(broker_id: int, offset: int, *, leader_end: int, now_ms: int, epoch: int = -1) -> RemoteReplica:
    replica = RemoteReplica(broker_id)
    replica.on_fetch(offset, 0, leader_end, now_ms, epoch)
    return replica


def slow(*replicas: RemoteReplica, leader_end: int, high_watermark: int, now_ms: int) -> set[int]:
    return out_of_sync(replicas, (0, 1, 2), leader_end, high_watermark, now_ms, MAX_LAG_MS)


# Lag


def test_a_follower_at_the_end_is_in_sync_however_long_it_has_not_fetched() -> None:
    at_end = fetched(1, 9, leader_end=9, now_ms=1000)
    assert slow(at_end, leader_end=9, high_watermark=5, now_ms=10**9) == set()


def test_a_follower_that_stops_fetching_leaves_after_the_lag_time() -> None:
    behind = fetched(1, 9, leader_end=9, now_ms=1000)
    assert slow(behind, leader_end=10, high_watermark=5, now_ms=1000 + MAX_LAG_MS) == set()
    assert slow(behind, leader_end=10, high_watermark=5, now_ms=1001 + MAX_LAG_MS) == {1}


def test_a_follower_that_is_always_one_fetch_behind_is_in_sync() -> None:
    behind = RemoteReplica(1)
    for step in range(100):
        behind.on_fetch(step * 10, 0, (step + 1) * 10, step * 1000, -1)
    assert behind.last_caught_up_ms == 98_000
    assert behind.is_caught_up(1000, 99_000, 1000)


def test_a_follower_that_falls_further_behind_with_each_fetch_leaves() -> None:
    behind = RemoteReplica(1, caught_up_ms=0)
    for step in range(1, 100):
        behind.on_fetch(step, 0, 1000 + step * 10, step * 1000, -1)
    assert slow(behind, leader_end=3000, high_watermark=1, now_ms=99_000) == {1}


def test_a_follower_that_never_fetched_has_the_lag_time_from_the_begin_of_the_epoch() -> None:
    silent = RemoteReplica(1, caught_up_ms=1000)
    assert slow(silent, leader_end=5, high_watermark=0, now_ms=31_000) == set()
    assert slow(silent, leader_end=5, high_watermark=0, now_ms=31_001) == {1}


def test_a_follower_without_committed_records_leaves_at_once() -> None:
    wiped = fetched(1, 0, leader_end=9, now_ms=1000)
    assert slow(wiped, leader_end=9, high_watermark=5, now_ms=1000) == {1}


def test_only_members_can_leave() -> None:
    behind = fetched(3, 0, leader_end=9, now_ms=0)
    assert slow(behind, leader_end=10, high_watermark=5, now_ms=10**9) == set()


# Admission


@pytest.mark.parametrize(("offset", "may_join"), [(4, False), (5, False), (6, True), (9, True)])
def test_a_follower_joins_at_the_high_watermark_and_the_start_of_the_epoch(
    offset: int, may_join: bool
) -> None:
    replica = fetched(1, offset, leader_end=9, now_ms=0)
    assert replica.may_join_isr(high_watermark=5, epoch_start_offset=6) is may_join
    assert replica.may_join_isr(high_watermark=6, epoch_start_offset=2) is may_join


@pytest.mark.parametrize(
    ("fetched_epoch", "registered", "is_current"),
    [(7, 7, True), (7, 8, False), (8, 7, False), (-1, 7, True), (7, -1, True), (7, None, False)],
)
def test_a_follower_joins_in_the_registration_in_which_it_fetched(
    fetched_epoch: int, registered: int | None, is_current: bool
) -> None:
    assert is_current_registration(fetched_epoch, registered) is is_current


# Pending changes


def test_a_pending_member_counts_for_the_high_watermark_but_not_for_min_isr() -> None:
    growing = IsrChange((0, 1, 2), (-1, -1, -1), 0, 0)
    assert largest_isr((0, 1), growing) == (0, 1, 2)
    assert smallest_isr((0, 1), growing) == (0, 1)

    shrinking = IsrChange((0,), (-1,), 0, 0)
    assert largest_isr((0, 1), shrinking) == (0, 1)
    assert smallest_isr((0, 1), shrinking) == (0,)

    assert largest_isr((0, 1), None) == smallest_isr((0, 1), None) == (0, 1)


def test_a_change_names_the_registrations_that_the_leader_has_seen() -> None:
    followers = {1: fetched(1, 0, leader_end=0, now_ms=0, epoch=71), 2: RemoteReplica(2)}
    change = proposed_change((0, 1, 2), 0, followers, 4, 9, {0: 70, 1: 99}.get)
    assert change == IsrChange((0, 1, 2), (70, 71, -1), leader_epoch=4, partition_epoch=9)


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_a_change_that_was_not_applied_is_given_up(error: ErrorCode) -> None:
    assert after_error(error).gives_up


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ],
)
def test_after_a_newer_decision_of_the_controller_the_leader_waits_for_it(error: ErrorCode) -> None:
    assert after_error(error).waits
    assert not after_error(error).gives_up


def test_other_errors_are_retried() -> None:
    after = after_error(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert not after.gives_up
    assert not after.waits
