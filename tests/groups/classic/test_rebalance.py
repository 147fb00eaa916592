from __future__ import annotations

from groups.given_groups import ManualShard
from odradek.common.error_codes import ErrorCode
from odradek.groups.classic_group import GroupState
from odradek.groups.settings import GroupSettings


def test_an_empty_group_waits_for_more_members_and_longer_while_they_come():
    shard = ManualShard(GroupSettings(initial_rebalance_delay_ms=3_000))
    _, first = shard.enter()
    shard.pass_time(2_000)
    _, second = shard.enter()
    shard.pass_time(1_000)
    assert first.is_waiting
    shard.pass_time(3_000)
    assert (first.answer.generation_id, second.answer.generation_id) == (1, 1)


def test_an_empty_group_does_not_wait_longer_than_a_rebalance_may_take():
    shard = ManualShard(GroupSettings(initial_rebalance_delay_ms=3_000))
    _, first = shard.enter(rebalance_timeout_ms=7_000)
    for _ in range(7):
        shard.pass_time(999)
        shard.enter()
    assert first.is_waiting
    shard.pass_time(7)
    assert first.answer.generation_id == 1


def test_members_that_do_not_come_in_time_are_dropped():
    shard = ManualShard()
    first, second = shard.stable("a", "b", rebalance_timeout_ms=30_000)
    waiting = shard.join(first, rebalance_timeout_ms=30_000)
    for _ in range(5):
        shard.pass_time(6_000)
        shard.heartbeat(second, 2)
    assert [member.member_id for member in waiting.answer.members] == [first]
    assert shard.heartbeat(second, 3).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_when_the_leader_does_not_come_another_leads():
    shard = ManualShard()
    _, second = shard.stable("a", "b")
    shard.pass_time(5_000)
    shard.heartbeat(second, 2)
    shard.pass_time(5_000)
    assert shard.join(second).answer.leader == second


def test_everybody_gets_what_the_leader_assigned_once_it_has():
    shard = ManualShard()
    first, _ = shard.enter()
    second, joined = shard.enter()
    shard.join(first)
    waiting = shard.sync(second, 2)
    assert waiting.is_waiting
    leaders = shard.sync(first, 2, {first: b"x", second: b"y"})
    assert (leaders.answer.assignment, waiting.answer.assignment) == (b"x", b"y")
    assert (waiting.answer.protocol_type, waiting.answer.protocol_name) == ("consumer", "range")
    assert joined.answer.generation_id == 2
    assert shard.sync(second, 2).answer.assignment == b"y"


def test_a_sync_is_refused_where_the_member_is_wrong_about_the_group():
    shard = ManualShard()
    member_id, _ = shard.enter()
    for refused, error in (
        (shard.sync("ghost", 1), ErrorCode.UNKNOWN_MEMBER_ID),
        (shard.sync(member_id, 2), ErrorCode.ILLEGAL_GENERATION),
        (shard.sync(member_id, 1, protocol_name="sticky"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (shard.sync(member_id, 1, protocol_type="connect"), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (shard.sync(member_id, 1, group_instance_id="i"), ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert refused.error is error


def test_waiters_for_an_assignment_get_an_error_when_it_will_never_come():
    shard = ManualShard()
    first, _ = shard.enter()
    second, _ = shard.enter()
    shard.join(first)
    waiting = shard.sync(second, 2)
    shard.leave(first)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert shard.sync(second, 2).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_members_that_never_fetch_their_assignment_are_dropped():
    shard = ManualShard()
    first, _ = shard.enter(rebalance_timeout_ms=20_000)
    second, _ = shard.enter(rebalance_timeout_ms=20_000)
    shard.join(first, rebalance_timeout_ms=20_000)
    shard.sync(first, 2, {first: b"x"})
    for _ in range(4):
        shard.pass_time(5_000)
        shard.heartbeat(first, 2)
        shard.heartbeat(second, 2)
    assert list(shard.group().members) == [first]
    assert shard.group_state is GroupState.PREPARING_REBALANCE


def test_the_protocol_that_most_prefer_among_those_that_all_have_is_chosen():
    shard = ManualShard()
    offers = (
        (("sticky", b"s1"), ("range", b"r1")),
        (("range", b"r2"), ("sticky", b"s2"), ("own", b"o2")),
        (("own", b"o3"), ("range", b"r3"), ("sticky", b"s3")),
    )
    ids: list[str] = []
    for offer in offers:
        ids.append(shard.enter(protocols=offer)[0])
        for one, earlier in zip(ids[:-1], offers, strict=False):
            shard.join(one, protocols=earlier)
    assert shard.group().protocol_name == "range"
    assert [member.metadata("range") for member in shard.group().members.values()] == [b"r1", b"r2", b"r3"]


def test_heartbeats_of_another_generation_or_member_are_refused():
    shard = ManualShard()
    (only,) = shard.stable("a")
    assert shard.heartbeat(only, 0).error is ErrorCode.ILLEGAL_GENERATION
    assert shard.heartbeat("ghost", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert shard.heartbeat(only, 1, group_instance_id="i").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_stable_group_is_the_same_after_a_reload():
    shard = ManualShard()
    shard.stable("a", "b")
    assert shard.reloaded().group() == shard.group()
