"""The follower's fetch session: what each request names."""

from __future__ import annotations

from odradek.replication.follower.fetch_session_handler import (
    MAX_EPOCH,
    FetchPosition,
    FetchRequestData,
    FetchSessionHandler,
)

FIRST, SECOND = (b"t", 0), (b"t", 1)


def at(offset: int) -> FetchPosition:
    return FetchPosition(offset, 0, 0, 0)


def established() -> FetchSessionHandler:
    session = FetchSessionHandler()
    session.want(FIRST, at(0))
    session.want(SECOND, at(0))
    session.next()
    session.answered(7)
    return session


def test_the_first_request_names_all_and_the_next_only_what_changed() -> None:
    session = FetchSessionHandler()
    session.want(FIRST, at(0))
    session.want(SECOND, at(5))
    assert session.next() == FetchRequestData(0, 0, {FIRST: at(0), SECOND: at(5)}, [])
    session.answered(7)
    session.want(FIRST, at(3))
    session.want(SECOND, at(5))
    assert session.next() == FetchRequestData(7, 1, {FIRST: at(3)}, [])
    session.answered(7)
    assert session.next() == FetchRequestData(7, 2, {}, [])


def test_a_removed_partition_is_forgotten_once() -> None:
    session = established()
    session.forget(SECOND)
    assert session.next() == FetchRequestData(7, 1, {}, [SECOND])
    session.answered(7)
    assert session.next().forgotten == []


def test_a_partition_that_comes_back_at_once_is_named_and_not_forgotten() -> None:
    session = established()
    session.forget(SECOND)
    session.want(SECOND, at(9))
    assert session.next() == FetchRequestData(7, 1, {SECOND: at(9)}, [])


def test_a_lost_session_is_replaced_by_a_new_one_with_all_partitions() -> None:
    session = established()
    session.restart(is_known=True)
    assert session.next() == FetchRequestData(7, 0, {FIRST: at(0), SECOND: at(0)}, [])
    session.restart()
    assert session.next().session_id == 0


def test_without_a_session_every_request_names_all() -> None:
    session = FetchSessionHandler()
    session.want(FIRST, at(0))
    for _ in range(3):
        assert session.next() == FetchRequestData(0, 0, {FIRST: at(0)}, [])
        session.answered(0)


def test_session_epochs_begin_again_at_one() -> None:
    session = established()
    session.epoch = MAX_EPOCH
    session.next()
    session.answered(7)
    assert session.epoch == 1
