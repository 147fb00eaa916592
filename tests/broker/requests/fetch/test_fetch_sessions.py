"""Fetch sessions: which session a request belongs to, what it reads, and what a response must name."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.requests.fetch.fetch_sessions import (
    EVICTABLE_AFTER_MS,
    MAX_EPOCH,
    FetchPartition,
    FetchSession,
    FetchSessionError,
    FetchSessions,
)
from odradek.common.error_codes import ErrorCode
from odradek.protocol.messages import FetchRequest, FetchResponse

TOPIC, OTHER_TOPIC = bytes(range(16)), bytes(range(16, 32))


def a_request(
    *partitions: tuple[bytes, int, int],
    session_id: int = 0,
    epoch: int = 0,
    forgotten: tuple[tuple[bytes, int], ...] = (),
) -> FetchRequest:
    """`partitions`: topic id, partition, fetch offset."""
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchRequest.Topics(
                topic_id=topic_id,
                partitions=[FetchRequest.Topics.Partitions(partition=index, fetch_offset=offset)],
            )
            for topic_id, index, offset in partitions
        ],
        forgotten_topics_data=[
            FetchRequest.ForgottenTopicsData(topic_id=topic_id, partitions=[index])
            for topic_id, index in forgotten
        ],
    )


def resolve(sessions: FetchSessions, request: FetchRequest, now_ms: int = 0) -> tuple[FetchSession, bool]:
    found: tuple[FetchSession, bool] = sessions.resolve(request, True, now_ms)
    return found


def begin(sessions: FetchSessions, now_ms: int = 0, index: int = 0) -> FetchSession:
    session, is_incremental = resolve(sessions, a_request((TOPIC, index, 0)), now_ms)
    assert not is_incremental
    return session


def offsets(session: FetchSession) -> dict[tuple[bytes, int], int]:
    return {key: one.fetch_offset for key, one in session.wanted.items()}


# Which session


def test_a_full_request_begins_a_session_and_the_next_ones_are_incremental() -> None:
    sessions = FetchSessions(10)
    session = begin(sessions)
    assert session.session_id > 0

    for epoch in (1, 2, 3):
        again, is_incremental = resolve(sessions, a_request(session_id=session.session_id, epoch=epoch))
        assert again is session
        assert is_incremental
    assert len(sessions) == 1


def test_a_request_without_a_session_leaves_none_behind() -> None:
    sessions = FetchSessions(10)
    session, is_incremental = resolve(sessions, a_request((TOPIC, 0, 5), epoch=-1))
    assert (session.session_id, is_incremental, len(sessions)) == (0, False, 0)
    assert offsets(session) == {(TOPIC, 0): 5}


def test_a_full_request_without_partitions_begins_no_session() -> None:
    sessions = FetchSessions(10)
    session, _ = resolve(sessions, a_request())
    assert (session.session_id, len(sessions)) == (0, 0)


@pytest.mark.parametrize(("epoch", "left"), [(0, 1), (-1, 0)])
def test_a_full_or_final_request_ends_the_session_that_it_names(epoch: int, left: int) -> None:
    sessions = FetchSessions(10)
    former = begin(sessions)

    session, is_incremental = resolve(
        sessions, a_request((TOPIC, 1, 0), session_id=former.session_id, epoch=epoch)
    )

    assert not is_incremental
    assert sessions.get(former.session_id) is None or sessions.get(former.session_id) is session
    assert len(sessions) == left
    assert list(session.wanted) == [(TOPIC, 1)]


@pytest.mark.parametrize(
    ("session_offset", "epoch", "uses_topic_ids", "expected"),
    [
        (1, 1, True, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, 2, True, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (0, MAX_EPOCH, True, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (0, 1, False, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_a_request_of_another_session_or_epoch_is_refused_and_changes_nothing(
    session_offset: int, epoch: int, uses_topic_ids: bool, expected: ErrorCode
) -> None:
    sessions = FetchSessions(10)
    session = begin(sessions)
    request = a_request((TOPIC, 0, 9), session_id=session.session_id + session_offset, epoch=epoch)

    with pytest.raises(FetchSessionError) as refused:
        sessions.resolve(request, uses_topic_ids, 0)

    assert refused.value.error_code == expected
    assert (session.epoch, offsets(session)) == (1, {(TOPIC, 0): 0})


def test_after_the_greatest_epoch_comes_1() -> None:
    sessions = FetchSessions(10)
    session = begin(sessions)
    session.epoch = MAX_EPOCH

    resolve(sessions, a_request(session_id=session.session_id, epoch=MAX_EPOCH))
    resolve(sessions, a_request(session_id=session.session_id, epoch=1))

    assert session.epoch == 2


def test_beyond_the_limit_only_a_session_unused_for_two_minutes_makes_way() -> None:
    sessions = FetchSessions(2)
    oldest, newer = begin(sessions, 0), begin(sessions, 10)
    resolve(
        sessions, a_request(session_id=oldest.session_id, epoch=1), now_ms=20
    )  # now `newer` is the oldest

    refused = begin(sessions, 10 + EVICTABLE_AFTER_MS - 1)
    assert (refused.session_id, len(sessions)) == (0, 2)

    accepted = begin(sessions, 10 + EVICTABLE_AFTER_MS)
    assert accepted.session_id > 0
    assert sessions.get(newer.session_id) is None
    assert sessions.get(oldest.session_id) is oldest


def test_without_room_for_sessions_every_request_is_a_full_one() -> None:
    assert begin(FetchSessions(0)).session_id == 0


# What is read


def test_partitions_are_added_changed_and_forgotten_in_the_order_of_their_coming() -> None:
    sessions = FetchSessions(10)
    session, _ = resolve(sessions, a_request((TOPIC, 0, 1), (TOPIC, 1, 2), (OTHER_TOPIC, 0, 3)))
    session_id = session.session_id

    resolve(
        sessions,
        a_request(
            (TOPIC, 1, 7), (TOPIC, 2, 4), session_id=session_id, epoch=1, forgotten=((TOPIC, 0), (TOPIC, 9))
        ),
    )

    assert list(offsets(session).items()) == [((TOPIC, 1), 7), ((OTHER_TOPIC, 0), 3), ((TOPIC, 2), 4)]


def test_partitions_that_returned_data_are_read_last_the_next_time() -> None:
    sessions = FetchSessions(10)
    session, _ = resolve(sessions, a_request((TOPIC, 0, 0), (TOPIC, 1, 0), (TOPIC, 2, 0)))

    session.move_to_end([(TOPIC, 0), (OTHER_TOPIC, 5), (TOPIC, 1)])

    assert list(session.wanted) == [(TOPIC, 2), (TOPIC, 0), (TOPIC, 1)]


# What a response names


def a_partition() -> FetchPartition:
    return FetchPartition("orders", TOPIC, FetchRequest.Topics.Partitions(partition=0))


def a_row(**fields: Any) -> FetchResponse.Responses.Partitions:
    offsets = {"high_watermark": 5, "last_stable_offset": 5, "log_start_offset": 0, "records": b""}
    return FetchResponse.Responses.Partitions(**{**offsets, **fields})


def test_a_partition_is_named_once_and_again_only_when_something_is_new() -> None:
    partition = a_partition()
    assert partition.has_changed(a_row())
    assert not partition.has_changed(a_row())


@pytest.mark.parametrize(
    "change",
    [
        {"high_watermark": 6},
        {"last_stable_offset": 4},
        {"log_start_offset": 1},
        {"records": b"a batch"},
        {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER},
        {"preferred_read_replica": 2},
        {"diverging_epoch": FetchResponse.Responses.Partitions.DivergingEpoch(epoch=3, end_offset=1)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_kind_of_change_names_the_partition(change: dict[str, Any]) -> None:
    partition = a_partition()
    partition.has_changed(a_row())
    assert partition.has_changed(a_row(**change))


def test_after_an_error_the_partition_is_named_again_with_the_same_offsets() -> None:
    partition = a_partition()
    partition.has_changed(a_row())
    partition.has_changed(a_row(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER))

    assert partition.has_changed(a_row())
    assert not partition.has_changed(a_row())
