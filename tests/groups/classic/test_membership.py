from __future__ import annotations

from groups.given_groups import ManualShard, a_subscription
from odradek.common.error_codes import ErrorCode
from odradek.groups.classic_group import GroupState
from odradek.groups.settings import GroupSettings


def test_a_new_member_is_given_an_id_and_comes_again_with_it():
    shard = ManualShard()
    first = shard.join()
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    second = shard.join(first.answer.member_id)
    assert (second.error, second.answer.member_id) == (ErrorCode.NONE, first.answer.member_id)
    assert shard.group_state is GroupState.COMPLETING_REBALANCE


def test_a_client_of_old_joins_at_once():
    joined = ManualShard().join(requires_known_member_id=False)
    assert joined.error is ErrorCode.NONE
    assert joined.answer.generation_id == 1
    assert joined.answer.leader == joined.answer.member_id
    assert [member.member_id for member in joined.answer.members] == [joined.answer.member_id]


def test_an_id_that_was_given_out_is_forgotten_after_a_session():
    shard = ManualShard()
    given = shard.join().answer.member_id
    shard.pass_time(10_000)
    assert shard.join(given).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_join_with_an_id_that_nobody_gave_out_is_refused():
    shard = ManualShard()
    assert shard.join("ghost").error is ErrorCode.UNKNOWN_MEMBER_ID
    shard.stable("a")
    assert shard.join("ghost").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_sessions_outside_of_the_limits_are_refused():
    shard = ManualShard(GroupSettings(min_session_timeout_ms=100, max_session_timeout_ms=200))
    for session_timeout_ms in (99, 201):
        refused = shard.join(session_timeout_ms=session_timeout_ms)
        assert refused.error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert shard.join(session_timeout_ms=100).error is ErrorCode.MEMBER_ID_REQUIRED


def test_a_member_without_a_common_protocol_is_refused():
    shard = ManualShard()
    shard.stable("a")
    for changes in ({"protocols": (("sticky", b""),)}, {"protocol_type": "connect"}, {"protocols": ()}):
        assert shard.join(**changes).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_takes_no_more():
    shard = ManualShard(GroupSettings(initial_rebalance_delay_ms=0, max_size=1))
    (only,) = shard.stable("a")
    assert shard.join().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert shard.join(only).error is ErrorCode.NONE


def test_a_second_member_makes_the_first_join_again():
    shard = ManualShard()
    (first,) = shard.stable("a")
    second, waiting = shard.enter()
    assert waiting.is_waiting
    assert shard.heartbeat(first, 1).error is ErrorCode.REBALANCE_IN_PROGRESS

    again = shard.join(first)

    assert (again.answer.generation_id, waiting.answer.generation_id) == (2, 2)
    assert {member.member_id for member in again.answer.members} == {first, second}
    assert waiting.answer.members == []
    assert waiting.answer.leader == first


def test_a_follower_that_joins_unchanged_continues_in_its_generation():
    shard = ManualShard()
    _, follower = shard.stable("a", "b")
    generation_id = shard.group().generation_id
    again = shard.join(follower)
    assert again.answer.generation_id == generation_id
    assert shard.group_state is GroupState.STABLE


def test_a_leader_that_joins_again_wants_a_rebalance():
    shard = ManualShard()
    leader, _ = shard.stable("a", "b")
    assert shard.join(leader).is_waiting
    assert shard.group_state is GroupState.PREPARING_REBALANCE


def test_a_changed_subscription_is_a_rebalance():
    shard = ManualShard()
    _, follower = shard.stable("a", "b")
    assert shard.join(follower, protocols=(("range", a_subscription("orders", "bills")),)).is_waiting
    assert shard.group_state is GroupState.PREPARING_REBALANCE


def test_a_lost_join_answer_is_given_again():
    shard = ManualShard()
    member_id, joined = shard.enter()
    again = shard.join(member_id)
    assert again.answer == joined.answer


def test_the_last_one_out_leaves_an_empty_group_with_a_generation_of_its_own():
    shard = ManualShard()
    (only,) = shard.stable("a")
    assert shard.leave(only) is ErrorCode.NONE
    group = shard.group()
    assert (group.state, group.generation_id, group.protocol_name, group.leader_id) == (
        GroupState.EMPTY,
        2,
        None,
        None,
    )
    assert shard.leave(only) is ErrorCode.UNKNOWN_MEMBER_ID
    assert shard.reloaded().group() == group


def test_a_member_that_leaves_makes_the_others_rebalance():
    shard = ManualShard()
    leader, follower = shard.stable("a", "b")
    assert shard.leave(leader) is ErrorCode.NONE
    assert shard.heartbeat(follower, 2).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert shard.join(follower).answer.leader == follower


def test_a_silent_member_is_dropped_after_its_session():
    shard = ManualShard()
    first, second = shard.stable("a", "b")
    shard.pass_time(9_999)
    assert shard.heartbeat(first, 2).error is ErrorCode.NONE
    shard.pass_time(1)
    assert shard.heartbeat(first, 2).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert shard.heartbeat(second, 2).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_waits_for_our_answer_is_not_dropped():
    shard = ManualShard()
    first, second = shard.stable("a", "b")
    waiting = shard.join(first)
    for _ in range(5):
        shard.pass_time(9_000)
        shard.heartbeat(second, 2)
    assert waiting.is_waiting
    assert first in shard.group().members


def test_a_new_member_that_never_receives_its_id_is_dropped_in_the_end():
    shard = ManualShard()
    (first,) = shard.stable("a", rebalance_timeout_ms=1_000_000)
    waiting = shard.join(requires_known_member_id=False)
    for _ in range(50):
        shard.pass_time(6_000)
        shard.heartbeat(first, 1)
    assert waiting.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(shard.group().members) == [first]


def test_leaving_gives_back_an_id_that_was_never_used():
    shard = ManualShard()
    (first,) = shard.stable("a")
    given = shard.join().answer.member_id
    waiting = shard.join(first)
    assert waiting.is_waiting
    assert shard.leave(given) is ErrorCode.NONE
    assert waiting.answer.generation_id == 2


# Static members


def test_a_static_member_that_comes_back_changes_nothing_for_the_others():
    shard = ManualShard()
    old, other = shard.stable("a", "b")
    joined = shard.join(group_instance_id="i1")
    static = shard.join(old), shard.join(other), joined
    generation_id = static[0].answer.generation_id
    members = [old, other, joined.answer.member_id]
    shard.sync(old, generation_id, {one: one.encode() for one in members})
    for member_id in members[1:]:
        shard.sync(member_id, generation_id)

    back = shard.join(group_instance_id="i1")

    assert back.answer.generation_id == generation_id
    assert back.answer.member_id != joined.answer.member_id
    assert shard.group_state is GroupState.STABLE
    kept = shard.sync(back.answer.member_id, generation_id, group_instance_id="i1")
    assert kept.answer.assignment == joined.answer.member_id.encode()
    fenced = shard.heartbeat(joined.answer.member_id, generation_id, group_instance_id="i1")
    assert fenced.error is ErrorCode.FENCED_INSTANCE_ID
    assert shard.reloaded().group().static_member("i1").member_id == back.answer.member_id


def test_a_static_leader_that_comes_back_skips_the_assignment_or_takes_itself_for_a_follower():
    for can_skip, expects_leader in ((True, True), (False, False)):
        shard = ManualShard()
        leader = shard.join(group_instance_id="i1").answer.member_id
        shard.sync(leader, 1, {leader: b"all"})
        back = shard.join(group_instance_id="i1", can_skip_assignment=can_skip).answer
        assert back.skip_assignment is can_skip
        assert (back.leader == back.member_id) is expects_leader
        assert bool(back.members) is expects_leader


def test_a_static_member_is_dropped_only_by_the_end_of_its_session():
    shard = ManualShard()
    static = shard.join(group_instance_id="i1", session_timeout_ms=100_000).answer.member_id
    shard.sync(static, 1, {static: b"all"})
    dynamic, waiting = shard.enter()
    shard.pass_time(60_000)
    assert waiting.answer.generation_id == 2
    assert static in shard.group().members
    assert dynamic == waiting.answer.leader


def test_an_administrator_removes_a_static_member_by_its_instance_id():
    shard = ManualShard()
    shard.join(group_instance_id="i1")
    assert shard.leave("", "i2") is ErrorCode.UNKNOWN_MEMBER_ID
    assert shard.leave("", "i1") is ErrorCode.NONE
    assert shard.group_state is GroupState.EMPTY


def test_the_former_instance_of_a_static_member_is_fenced_while_it_waits():
    shard = ManualShard(GroupSettings(initial_rebalance_delay_ms=1_000))
    waiting = shard.join(group_instance_id="i1")
    back = shard.join(group_instance_id="i1")
    assert waiting.error is ErrorCode.FENCED_INSTANCE_ID
    shard.pass_time(1_000)
    assert back.answer.generation_id == 1


def test_a_loaded_group_gives_every_member_a_whole_session():
    shard = ManualShard()
    (only,) = shard.stable("a")
    shard.pass_time(9_000)
    other = shard.reloaded()
    other.pass_time(9_000)
    assert other.heartbeat(only, 1).error is ErrorCode.NONE
    other.pass_time(10_000)
    assert other.group_state is GroupState.EMPTY
