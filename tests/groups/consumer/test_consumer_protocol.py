"""Groups of the new protocol: members walk towards the target, and never two of them have one partition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from groups.given_groups import FakeTopics, ManualShard, Ticket
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.groups.classic_group import Group
from odradek.groups.committed import OffsetAndMetadata
from odradek.groups.consumer.consumer_group import ConsumerGroup, ConsumerGroupState, MemberState
from odradek.groups.requests import admin, consumer_admin
from odradek.groups.requests import offset_requests as offsets
from odradek.groups.requests.offset_requests import Commit
from odradek.groups.settings import GroupSettings


class Client:
    """A consumer that follows its heartbeat responses, when it is asked to beat."""

    def __init__(self, shard: ManualShard, member_id: str, *topics: str, **fields: Any) -> None:
        self.shard = shard
        self.member_id = member_id
        self.epoch = 0
        self.owned: frozenset[tuple[bytes, int]] = frozenset()
        self.first = {"topics": frozenset(topics), "rebalance_timeout_ms": 60_000, **fields}

    def beat(self, **fields: Any) -> Ticket:
        if self.epoch == 0:
            fields = {**self.first, **fields}
        ticket = self.shard.beat(self.member_id, self.epoch, owned=self.owned, **fields)
        if ticket.answer.error_code == ErrorCode.NONE:
            self.epoch = ticket.answer.member_epoch
            if ticket.answer.assignment is not None:
                self.owned = frozenset(
                    (topic.topic_id, index)
                    for topic in ticket.answer.assignment.topic_partitions
                    for index in topic.partitions
                )
        return ticket

    def leave(self, epoch: int = -1, **fields: Any) -> Ticket:
        return self.shard.beat(self.member_id, epoch, **fields)

    @property
    def numbers(self) -> list[int]:
        return sorted(index for _, index in self.owned)


def settle(*clients: Client) -> None:
    for _ in range(4):
        for client in clients:
            client.beat()


def test_the_first_member_gets_everything_at_once():
    shard = ManualShard()
    first = Client(shard, "m1", "orders", "bills")
    answer = first.beat().answer
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("m1", 2, 5_000)
    assert first.numbers == [0, 0, 1, 1, 2, 3, 4, 5]
    assert shard.consumer_group().state is ConsumerGroupState.STABLE
    assert first.beat().answer.assignment is None, "nothing has changed"


def test_a_partition_is_given_to_another_only_when_its_owner_said_it_gave_it_up():
    shard = ManualShard()
    first, second = Client(shard, "m1", "orders"), Client(shard, "m2", "orders")
    first.beat()

    second.beat()
    assert second.numbers == []
    assert shard.consumer_group().members["m2"].state is MemberState.UNRELEASED_PARTITIONS

    was = first.owned
    first.beat()
    assert len(first.owned) == 3
    assert shard.consumer_group().state is ConsumerGroupState.RECONCILING
    second.beat()
    assert second.numbers == [], "the first one has not said yet that it gave them up"

    first.beat()
    second.beat()
    assert first.owned | second.owned == was
    assert len(second.owned) == 3
    assert (first.epoch, second.epoch) == (3, 3)
    assert shard.consumer_group().state is ConsumerGroupState.STABLE


def test_who_leaves_is_inherited_from():
    shard = ManualShard()
    first, second = Client(shard, "m1", "orders"), Client(shard, "m2", "orders")
    settle(first, second)
    left = second.leave()
    assert (left.answer.member_id, left.answer.member_epoch) == ("m2", -1)
    first.beat()
    assert len(first.owned) == 6


def test_who_is_silent_for_a_session_is_dropped():
    shard = ManualShard()
    first, second = Client(shard, "m1", "orders"), Client(shard, "m2", "orders")
    settle(first, second)
    shard.pass_time(44_999)
    first.beat()
    shard.pass_time(1)
    assert list(shard.consumer_group().members) == ["m1"]
    assert second.beat().error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_may_have_a_session_and_an_interval_of_its_own():
    shard = ManualShard()
    shard.settings_by_group["g"] = replace(
        shard.settings, consumer_session_timeout_ms=60_000, consumer_heartbeat_interval_ms=7000
    )
    assert Client(shard, "m1", "orders").beat().answer.heartbeat_interval_ms == 7000
    shard.pass_time(59_999)
    assert list(shard.consumer_group().members) == ["m1"]
    shard.pass_time(1)
    assert list(shard.consumer_group().members) == []


def test_who_does_not_give_up_partitions_in_time_is_dropped():
    shard = ManualShard()
    first, second = Client(shard, "m1", "orders"), Client(shard, "m2", "orders")
    first.beat()
    second.beat()
    held = first.owned
    for _ in range(3):
        shard.beat("m1", first.epoch, owned=held)
        second.beat()
        shard.pass_time(20_000)
    assert list(shard.consumer_group().members) == ["m2"]
    second.beat()
    assert len(second.owned) == 6


def test_a_member_in_another_epoch_is_fenced_unless_our_answer_got_lost():
    shard = ManualShard()
    first = Client(shard, "m1", "orders")
    first.beat()
    assert shard.beat("m1", 9, owned=frozenset()).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert shard.beat("m1", 1, owned=frozenset()).error is ErrorCode.FENCED_MEMBER_EPOCH
    again = shard.beat("m1", 0, topics=frozenset({"orders"}), rebalance_timeout_ms=1, owned=frozenset())
    assert again.answer.member_epoch == 2
    assert again.answer.assignment is not None


def test_new_partitions_and_topics_are_assigned_with_the_next_heartbeats():
    topics = FakeTopics(orders=2)
    shard = ManualShard(topics=topics)
    client = Client(shard, "m1", "orders", "bills")
    client.beat()
    assert len(client.owned) == 2
    topics.make("orders", 4)
    client.beat()
    assert len(client.owned) == 4
    topics.make("bills", 1)
    client.beat()
    assert len(client.owned) == 5
    topics.delete("orders")
    settle(client)
    assert len(client.owned) == 1


def test_patterns_follow_the_topics():
    topics = FakeTopics(orders=1, bills=1)
    shard = ManualShard(topics=topics)
    client = Client(shard, "m1", regex="ord.*")
    client.beat()
    assert {topics.name_of(topic_id) for topic_id, _ in client.owned} == {"orders"}
    topics.make("ordinary", 1)
    topics.make("reorder", 1)
    client.beat()
    assert {topics.name_of(topic_id) for topic_id, _ in client.owned} == {"orders", "ordinary"}
    assert shard.reloaded().consumer_group() == shard.consumer_group()
    client.leave()
    assert not shard.consumer_group().regexes


def test_a_pattern_that_is_none_is_refused():
    assert ManualShard().enter_consumer("m1", regex="(").error is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_that_would_keep_others_busy_for_ages_does_not():
    topics = FakeTopics(**{"a" * 200 + "b": 1})
    shard = ManualShard(topics=topics)
    assert shard.enter_consumer("m1", regex="(a*)*c").error is ErrorCode.NONE


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"owned": frozenset({(b"x" * 16, 0)})}, ErrorCode.INVALID_REQUEST),
        ({"owned": None}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "mine"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
    ],
)
def test_a_join_that_makes_no_sense_is_refused(fields, error):
    assert ManualShard().enter_consumer("m1", "orders", **fields).error is error


def test_heartbeats_without_sense_are_refused():
    shard = ManualShard()
    assert shard.beat("", 0).error is ErrorCode.INVALID_REQUEST
    assert shard.beat("m1", -3).error is ErrorCode.INVALID_REQUEST
    assert shard.beat("m1", -2).error is ErrorCode.INVALID_REQUEST
    assert shard.beat("m1", 1).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert shard.beat("m1", -1).error is ErrorCode.GROUP_ID_NOT_FOUND
    shard.enter_consumer("m1", "orders")
    assert shard.beat("m2", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert shard.beat("m2", -1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_takes_no_more():
    shard = ManualShard(GroupSettings(consumer_max_size=1))
    shard.enter_consumer("m1", "orders")
    assert shard.enter_consumer("m2", "orders").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert shard.enter_consumer("m1", "orders").error is ErrorCode.NONE


def test_the_protocol_can_be_switched_off():
    shard = ManualShard(GroupSettings(is_consumer_protocol_enabled=False))
    assert shard.enter_consumer("m1", "orders").error is ErrorCode.UNSUPPORTED_VERSION


def test_the_assignor_that_most_members_want_is_used():
    shard = ManualShard(topics=FakeTopics(orders=3, bills=3))
    clients = [Client(shard, f"m{n}", "orders", "bills", server_assignor="range") for n in (1, 2)]
    settle(*clients)
    assert clients[0].numbers == [0, 0, 1, 1], "the first one gets the larger part of every topic"
    described = consumer_admin.describe(shard.state, "g")
    assert described.assignor_name == "range"


def test_assignments_are_computed_once_an_interval():
    shard = ManualShard(GroupSettings(consumer_assignment_interval_ms=1_000))
    first, second = Client(shard, "m1", "orders"), Client(shard, "m2", "orders")
    first.beat()
    second.beat()
    assert shard.consumer_group().state is ConsumerGroupState.ASSIGNING
    shard.pass_time(1_000)
    assert shard.consumer_group().state is ConsumerGroupState.RECONCILING
    settle(first, second)
    assert (len(first.owned), len(second.owned)) == (3, 3)


# Static members


def test_a_static_member_that_goes_for_a_while_keeps_its_partitions():
    shard = ManualShard()
    static, other = Client(shard, "m1", "orders", instance_id="i1"), Client(shard, "m2", "orders")
    settle(static, other)
    had = static.owned
    assert static.leave(-2, instance_id="i1").answer.member_epoch == -2
    settle(other)
    assert len(other.owned) == 3

    back = Client(shard, "m3", "orders", instance_id="i1")
    back.beat()
    assert back.owned == had
    assert static.beat(instance_id="i1").error is ErrorCode.FENCED_INSTANCE_ID
    assert shard.reloaded().consumer_group() == shard.consumer_group()


def test_a_static_member_that_does_not_come_back_is_dropped():
    shard = ManualShard()
    static, other = Client(shard, "m1", "orders", instance_id="i1"), Client(shard, "m2", "orders")
    settle(static, other)
    static.leave(-2, instance_id="i1")
    for _ in range(5):
        shard.pass_time(10_000)
        other.beat()
    settle(other)
    assert len(other.owned) == 6


def test_an_instance_id_in_use_is_not_given_away():
    shard = ManualShard()
    shard.enter_consumer("m1", "orders", instance_id="i1")
    refused = shard.enter_consumer("m2", "orders", instance_id="i1")
    assert refused.error is ErrorCode.UNRELEASED_INSTANCE_ID


# Offsets and administration


def commit(shard: ManualShard, member_id: str, epoch: int, partition: int = 0, **fields: Any) -> Ticket:
    committed = OffsetAndMetadata(1, -1, "", shard.now_ms)
    request = Commit("g", {TopicPartition("orders", partition): committed}, epoch, member_id, **fields)
    return shard.ask(lambda state, now_ms: offsets.commit(state, request, now_ms))


def test_members_commit_in_their_epoch_or_in_an_earlier_one_in_which_they_had_the_partition():
    shard = ManualShard()
    first, second = Client(shard, "m1", "orders"), Client(shard, "m2", "orders")
    first.beat()
    assert commit(shard, "m1", 2).answer == {TopicPartition("orders", 0): ErrorCode.NONE}
    settle(first, second)
    assert commit(shard, "m1", 2, first.numbers[0]).answer == {
        TopicPartition("orders", first.numbers[0]): ErrorCode.NONE
    }
    assert commit(shard, "m1", 2, second.numbers[0]).error is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(shard, "m1", 9).error is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(shard, "ghost", 3).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(shard, "", -1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(shard, "m1", 3, knows_group_errors=False).error is ErrorCode.UNSUPPORTED_VERSION


def test_a_fetch_by_a_member_must_be_of_its_epoch():
    shard = ManualShard()
    shard.enter_consumer("m1", "orders")
    for member_id, epoch, error in (
        ("m1", 1, ErrorCode.STALE_MEMBER_EPOCH),
        ("ghost", 2, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        check = shard.ask(
            lambda state, _, member_id=member_id, epoch=epoch: offsets.check_member(
                state, "g", member_id, epoch
            )
        )
        assert check.error is error
    offsets.check_member(shard.state, "g", "m1", 2)
    offsets.check_member(shard.state, "g", None, -1)


def test_a_group_is_listed_and_described_by_what_it_is():
    shard = ManualShard()
    client = Client(shard, "m1", "orders")
    client.beat()
    (row,) = admin.list_groups(shard.state, ["stable"], ["consumer"])
    assert (row.group_id, row.protocol_type, row.group_type) == ("g", "consumer", "consumer")
    described = consumer_admin.describe(shard.state, "g")
    (member,) = described.members
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Stable", 2, 2)
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("orders", [0, 1, 2, 3, 4, 5])
    assert (
        admin.describe(shard.state, "g", knows_group_errors=True).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    )
    assert consumer_admin.describe(shard.state, "x").error_message == "Group x not found."


def test_an_empty_group_is_deleted_with_everything():
    shard = ManualShard()
    client = Client(shard, "m1", "orders")
    client.beat()
    commit(shard, "m1", 2)
    assert shard.ask(lambda state, _: admin.delete(state, "g")).error is ErrorCode.NON_EMPTY_GROUP
    client.leave()
    assert shard.ask(lambda state, _: admin.delete(state, "g")).answer is ErrorCode.NONE
    for one in (shard, shard.reloaded()):
        assert not one.state.groups
        assert not one.state.offsets.of("g")


def test_a_coordinator_that_loads_the_log_comes_to_the_same_group():
    shard = ManualShard()
    first, second = Client(shard, "m1", "orders"), Client(shard, "m2", "orders", "bills")
    for client in (first, second, first, second, first):
        client.beat()
        assert shard.reloaded().consumer_group() == shard.consumer_group()


# Between the protocols


def test_an_empty_classic_group_becomes_a_consumer_group_and_back():
    shard = ManualShard()
    (only,) = shard.stable("a")
    shard.leave(only)
    client = Client(shard, "m1", "orders")
    client.beat()
    assert len(client.owned) == 6
    client.leave()
    shard.stable("b")
    assert isinstance(shard.reloaded().state.groups["g"], Group)


def classic_assignment(ticket: Ticket) -> int:
    """How many partitions a SyncGroup answer holds: one topic, its name, then the numbers."""
    content = ticket.answer.assignment
    if int.from_bytes(content[2:6], "big") == 0:
        return 0
    name_length = int.from_bytes(content[6:8], "big")
    return int.from_bytes(content[8 + name_length : 12 + name_length], "big")


def test_a_classic_group_is_upgraded_by_its_first_member_of_the_new_protocol_and_downgraded_by_its_last():
    shard = ManualShard()
    (classic,) = shard.stable("")
    new = Client(shard, "m1", "orders")
    new.beat()
    assert isinstance(shard.state.groups["g"], ConsumerGroup)
    assert shard.reloaded().consumer_group() == shard.consumer_group()

    assert shard.heartbeat(classic, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    joined = shard.join(classic)
    epoch = joined.answer.generation_id
    synced = shard.sync(classic, epoch, protocol_type="consumer", protocol_name="range")
    settle(new)
    joined = shard.join(classic)
    synced = shard.sync(classic, joined.answer.generation_id)
    assert (classic_assignment(synced), len(new.owned)) == (3, 3)
    assert shard.heartbeat(classic, joined.answer.generation_id).error is ErrorCode.NONE

    new.leave()
    group = shard.group()
    assert list(group.members) == [classic]
    assert shard.heartbeat(classic, group.generation_id).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert shard.join(classic).answer.leader == classic
    assert isinstance(shard.reloaded().state.groups["g"], Group)


def test_a_classic_member_leaves_a_consumer_group():
    shard = ManualShard()
    new = Client(shard, "m1", "orders")
    new.beat()
    classic, joined = shard.enter()
    assert joined.error is ErrorCode.NONE
    assert shard.leave(classic) is ErrorCode.NONE
    assert shard.leave(classic) is ErrorCode.UNKNOWN_MEMBER_ID
    settle(new)
    assert len(new.owned) == 6
    assert shard.leave("m1") is ErrorCode.NONE, "as administrators remove members"
    assert not shard.consumer_group().members


def test_a_classic_member_that_does_not_join_again_in_time_is_dropped():
    shard = ManualShard()
    new = Client(shard, "m1", "orders")
    new.beat()
    classic, joined = shard.enter(rebalance_timeout_ms=20_000)
    epoch = joined.answer.generation_id
    shard.sync(classic, epoch)
    Client(shard, "m2", "orders").beat()
    for _ in range(4):
        assert shard.heartbeat(classic, epoch).error is ErrorCode.REBALANCE_IN_PROGRESS
        new.beat()
        shard.pass_time(5_000)
    assert classic not in shard.consumer_group().members


def test_the_policy_may_forbid_both_ways():
    shard = ManualShard(
        GroupSettings(initial_rebalance_delay_ms=0, is_upgrade_enabled=False, is_downgrade_enabled=False)
    )
    (classic,) = shard.stable("a")
    assert shard.enter_consumer("m1", "orders").error is ErrorCode.GROUP_ID_NOT_FOUND
    shard.leave(classic)
    new = Client(shard, "m1", "orders")
    new.beat()
    shard.enter()
    new.leave()
    assert isinstance(shard.state.groups["g"], ConsumerGroup)


def test_those_who_wait_for_a_classic_rebalance_are_sent_to_join_again_by_an_upgrade():
    shard = ManualShard(GroupSettings(initial_rebalance_delay_ms=1_000))
    _, waiting = shard.enter()
    shard.enter_consumer("m1", "orders")
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
