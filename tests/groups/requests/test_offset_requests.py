from __future__ import annotations

from typing import Any

import pytest

from groups.given_groups import ManualShard, Ticket, a_subscription
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.groups.classic_group import GroupState
from odradek.groups.committed import NOT_COMMITTED, OffsetAndMetadata
from odradek.groups.records import offset_commit
from odradek.groups.requests import admin
from odradek.groups.requests import offset_requests as offsets
from odradek.groups.requests.offset_requests import Commit, FetchedOffset
from odradek.groups.settings import GroupSettings

ORDERS = TopicPartition("orders", 0)
BILLS = TopicPartition("bills", 0)


def an_offset(shard: ManualShard, number: int = 7, **changes: Any) -> OffsetAndMetadata:
    return OffsetAndMetadata(number, 3, "a note", shard.now_ms)._replace(**changes)


def commit(shard: ManualShard, partition: TopicPartition = ORDERS, number: int = 7, **fields: Any) -> Ticket:
    changes = {key: fields.pop(key) for key in ("expire_timestamp_ms", "metadata") if key in fields}
    request = Commit("g", {partition: an_offset(shard, number, **changes)}, **fields)
    return shard.ask(lambda state, now_ms: offsets.commit(state, request, now_ms))


def committed(shard: ManualShard, partition: TopicPartition = ORDERS) -> OffsetAndMetadata:
    return offsets.fetch(shard.state, "g", [partition], require_stable=False)[partition].committed


def test_a_consumer_without_a_group_commits_and_fetches():
    shard = ManualShard()
    assert commit(shard).answer == {ORDERS: ErrorCode.NONE}
    assert committed(shard) == an_offset(shard)
    assert offsets.fetch(shard.state, "g", None, require_stable=False) == {
        ORDERS: FetchedOffset(an_offset(shard))
    }
    assert committed(shard.reloaded()) == an_offset(shard)


def test_what_was_never_committed_is_reported_as_minus_one():
    assert committed(ManualShard()) == NOT_COMMITTED


def test_a_note_that_is_too_long_is_refused_and_the_others_are_kept():
    shard = ManualShard(GroupSettings(offset_metadata_max_bytes=3))
    request = Commit("g", {ORDERS: an_offset(shard), BILLS: an_offset(shard, metadata="abc")})
    ticket = shard.ask(lambda state, now_ms: offsets.commit(state, request, now_ms))
    assert ticket.answer == {ORDERS: ErrorCode.OFFSET_METADATA_TOO_LARGE, BILLS: ErrorCode.NONE}
    assert committed(shard) == NOT_COMMITTED


def test_members_commit_in_their_generation_only():
    shard = ManualShard()
    (only,) = shard.stable("a")
    assert commit(shard, member_id=only, generation_id=1).answer == {ORDERS: ErrorCode.NONE}
    for fields, error in (
        ({"member_id": only, "generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "ghost", "generation_id": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": only, "generation_id": 1, "group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert commit(shard, **fields).error is error


def test_a_commit_during_a_rebalance_is_taken_until_the_next_generation_is_known():
    shard = ManualShard()
    first, second = shard.stable("a", "b")
    shard.join(first)
    assert commit(shard, member_id=second, generation_id=2).answer == {ORDERS: ErrorCode.NONE}
    shard.join(second)
    assert commit(shard, member_id=second, generation_id=2).error is ErrorCode.ILLEGAL_GENERATION
    assert commit(shard, member_id=second, generation_id=3).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_in_a_group_that_is_not_there_is_refused_with_the_error_code_of_the_version():
    shard = ManualShard()
    assert commit(shard, generation_id=1, member_id="m").error is ErrorCode.GROUP_ID_NOT_FOUND
    old = commit(shard, generation_id=1, member_id="m", knows_group_errors=False)
    assert old.error is ErrorCode.ILLEGAL_GENERATION


def test_a_commit_keeps_a_session_alive():
    shard = ManualShard()
    (only,) = shard.stable("a")
    for _ in range(3):
        shard.pass_time(9_000)
        commit(shard, member_id=only, generation_id=1)
    assert shard.group_state is GroupState.STABLE


def test_offsets_of_unsubscribed_topics_can_be_deleted():
    shard = ManualShard()
    (only,) = shard.stable("a")
    for partition in (ORDERS, BILLS):
        commit(shard, partition, member_id=only, generation_id=1)
    deleted = shard.ask(lambda state, now_ms: offsets.delete(state, "g", [ORDERS, BILLS]))
    assert deleted.answer == {ORDERS: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, BILLS: ErrorCode.NONE}
    assert committed(shard, BILLS) == NOT_COMMITTED
    assert committed(shard.reloaded(), BILLS) == NOT_COMMITTED
    assert committed(shard) != NOT_COMMITTED


def test_offsets_cannot_be_deleted_where_it_is_unknown_what_is_read():
    shard = ManualShard()
    assert shard.ask(lambda state, _: offsets.delete(state, "g", [])).error is ErrorCode.GROUP_ID_NOT_FOUND
    shard.stable("a", protocol_type="connect")
    assert shard.ask(lambda state, _: offsets.delete(state, "g", [])).error is ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_deleted_topics_are_forgotten_in_all_groups():
    shard = ManualShard()
    for partition in (ORDERS, BILLS):
        commit(shard, partition)
    shard.ask(lambda state, _: offsets.delete_partitions(state, {ORDERS}))
    for one in (shard, shard.reloaded()):
        assert list(one.state.offsets.of("g")) == [BILLS]


def test_a_group_without_members_is_deleted_with_its_offsets():
    shard = ManualShard()
    (only,) = shard.stable("a")
    commit(shard, member_id=only, generation_id=1)
    assert shard.ask(lambda state, _: admin.delete(state, "g")).error is ErrorCode.NON_EMPTY_GROUP
    shard.leave(only)
    assert shard.ask(lambda state, _: admin.delete(state, "g")).answer is ErrorCode.NONE
    for one in (shard, shard.reloaded()):
        assert not one.state.groups
        assert committed(one) == NOT_COMMITTED
    assert shard.ask(lambda state, _: admin.delete(state, "g")).error is ErrorCode.GROUP_ID_NOT_FOUND


# Expiry: one look every 10 minutes, a retention of 60

MINUTE_MS = 60_000
HOUR = GroupSettings(
    initial_rebalance_delay_ms=0, max_session_timeout_ms=2**31 - 1, offsets_retention_ms=60 * MINUTE_MS
)


@pytest.fixture
def shard() -> ManualShard:
    return ManualShard(HOUR)


def test_offsets_of_a_simple_consumer_expire_after_their_commit(shard):
    commit(shard)
    shard.pass_time(59 * MINUTE_MS)
    assert committed(shard) != NOT_COMMITTED
    shard.pass_time(10 * MINUTE_MS)
    assert committed(shard) == NOT_COMMITTED
    assert not shard.state.groups
    assert not shard.reloaded().state.groups


def test_offsets_of_a_group_expire_after_its_last_member_went(shard):
    (only,) = shard.stable("a", session_timeout_ms=24 * 60 * MINUTE_MS)
    commit(shard, member_id=only, generation_id=1)
    shard.pass_time(600 * MINUTE_MS)
    assert committed(shard) != NOT_COMMITTED
    shard.leave(only)
    shard.pass_time(59 * MINUTE_MS)
    assert committed(shard) != NOT_COMMITTED
    shard.pass_time(11 * MINUTE_MS)
    assert committed(shard) == NOT_COMMITTED


def test_in_an_active_group_only_offsets_of_unsubscribed_topics_expire(shard):
    (only,) = shard.stable("a", session_timeout_ms=24 * 60 * MINUTE_MS)
    for partition in (ORDERS, BILLS):
        commit(shard, partition, member_id=only, generation_id=1)
    shard.pass_time(70 * MINUTE_MS)
    assert committed(shard) != NOT_COMMITTED
    assert committed(shard, BILLS) == NOT_COMMITTED


def test_an_expiry_that_the_client_asked_for_is_kept(shard):
    commit(shard, expire_timestamp_ms=shard.now_ms + 5 * MINUTE_MS)
    assert shard.reloaded().state.offsets.of("g")[ORDERS].expire_timestamp_ms is not None
    shard.pass_time(10 * MINUTE_MS)
    assert committed(shard) == NOT_COMMITTED


def test_members_with_unreadable_subscriptions_keep_all_offsets(shard):
    (only,) = shard.stable("a", session_timeout_ms=24 * 60 * MINUTE_MS, protocols=(("range", b"?"),))
    commit(shard, BILLS, member_id=only, generation_id=1)
    shard.pass_time(90 * MINUTE_MS)
    assert committed(shard, BILLS) != NOT_COMMITTED


# Transactions, as another coordinator writes them


def test_offsets_of_a_transaction_count_once_it_is_committed():
    shard = ManualShard()
    commit(shard, number=1)
    for producer_id, is_commit, expected in ((5, False, 1), (6, True, 9)):
        shard.state.replay(offset_commit("g", ORDERS, an_offset(shard, 9)), producer_id)
        found = offsets.fetch(shard.state, "g", [ORDERS], require_stable=True)[ORDERS]
        assert found.error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert committed(shard).offset == 1
        shard.state.replay_end_of_transaction(producer_id, is_commit=is_commit)
        assert committed(shard).offset == expected


@pytest.mark.parametrize("is_known", [True, False], ids=["committed before", "only pending"])
@pytest.mark.parametrize(
    "delete",
    [
        lambda state, _: offsets.delete_partitions(state, {ORDERS}),
        lambda state, _: offsets.delete(state, "g", [ORDERS]),
        lambda state, _: admin.delete(state, "g"),
    ],
    ids=["topic", "offset", "group"],
)
def test_what_is_deleted_during_a_transaction_does_not_come_back_with_its_end(delete, is_known):
    shard = ManualShard()
    if is_known:
        commit(shard, number=1)
    shard.state.replay(offset_commit("g", ORDERS, an_offset(shard, 9)), 5)
    shard.ask(delete)
    assert not shard.state.offsets.is_pending("g", ORDERS)
    shard.state.replay_end_of_transaction(5, is_commit=True)
    assert committed(shard) == NOT_COMMITTED


def test_groups_are_listed_by_state_and_type():
    shard = ManualShard()
    commit(shard)
    shard.join(group_id="h")
    assert [row.group_id for row in admin.list_groups(shard.state, [], [])] == ["g", "h"]
    assert admin.list_groups(shard.state, ["stable"], []) == []
    assert len(admin.list_groups(shard.state, ["EMPTY"], ["Classic"])) == 2
    assert admin.list_groups(shard.state, [], ["consumer"]) == []


def test_a_stable_group_is_described_with_what_its_members_read():
    shard = ManualShard()
    shard.stable("a", protocols=(("range", a_subscription("x")),))
    described = admin.describe(shard.state, "g", knows_group_errors=True)
    assert (described.group_state, described.protocol_type, described.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    (member,) = described.members
    assert (member.member_metadata, member.member_assignment) == (a_subscription("x"), b"a")


def test_a_group_that_is_not_there_is_dead_or_not_found():
    state = ManualShard().state
    old, new = (admin.describe(state, "x", knows_group_errors=known) for known in (False, True))
    assert (old.error_code, old.group_state) == (ErrorCode.NONE, "Dead")
    assert (new.error_code, new.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group x not found.")
