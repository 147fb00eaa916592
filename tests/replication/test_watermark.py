"""The high watermark from log end offsets."""

from __future__ import annotations

from odradek.replication.remote_replica import RemoteReplica
from odradek.replication.watermark import high_watermark


def followers(*end_offsets: int) -> list[RemoteReplica]:
    made = []
    for broker_id, end_offset in enumerate(end_offsets, 1):
        replica = RemoteReplica(broker_id)
        if end_offset >= 0:
            replica.on_fetch(end_offset, 0, 0, 0, -1)
        made.append(replica)
    return made


def test_the_oracle_of_the_specification() -> None:
    first = high_watermark(9, followers(8, 6), 0)
    second = high_watermark(9, followers(8, 8), first)
    third = high_watermark(9, followers(9, 9), second)
    assert (first, second, third) == (6, 8, 9)


def test_it_never_moves_back() -> None:
    assert high_watermark(9, followers(3), 5) == 5


def test_a_leader_without_followers_commits_what_it_has() -> None:
    assert high_watermark(9, [], 5) == 9


def test_it_is_not_beyond_the_leaders_own_end() -> None:
    assert high_watermark(7, followers(9), 5) == 7


def test_a_replica_that_never_fetched_holds_it_back() -> None:
    assert high_watermark(9, followers(8, -1), 5) == 5
