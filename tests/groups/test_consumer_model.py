"""Groups of the new protocol under any order of heartbeats, departures, changes of topics and passing time.

Clients obey with delays: a heartbeat or its answer may get lost, a coordinator may move. At no time do two
clients read one partition, and left in peace the group settles with everything assigned, evenly.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from groups.given_groups import FakeTopics, ManualShard
from odradek.common.error_codes import ErrorCode
from odradek.groups.consumer.consumer_group import ConsumerGroup, ConsumerGroupState, PartitionId

pytestmark = pytest.mark.slow  # each of them takes a second or more

CLIENTS = ("a", "b", "c")
SESSION_MS = 45_000


class ModelClient:
    """A consumer: what it reads, and the epoch that it believes in."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.life = 0
        self.last_heard_ms = 0
        self.stop()

    def stop(self) -> None:
        self.life += 1
        self.epoch = 0
        self.is_running = False
        self.reads: frozenset[PartitionId] = frozenset()

    @property
    def member_id(self) -> str:
        return f"{self.name}{self.life}"


class ConsumerGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.topics = FakeTopics(orders=4, bills=1)
        self.shard = ManualShard(topics=self.topics)
        self.clients = {name: ModelClient(name) for name in CLIENTS}

    @rule(name=st.sampled_from(CLIENTS), is_lost=st.booleans())
    def beat(self, name: str, is_lost: bool) -> None:
        client = self.clients[name]
        fields = {"owned": client.reads}
        if client.epoch == 0:
            fields |= {"topics": frozenset({"orders", "bills"}), "rebalance_timeout_ms": 60_000}
        ticket = self.shard.beat(client.member_id, client.epoch, **fields)
        client.is_running = True
        if is_lost:
            return
        client.last_heard_ms = self.shard.now_ms
        if ticket.error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            client.epoch, client.reads = 0, frozenset()
            return
        assert ticket.error is ErrorCode.NONE
        client.epoch = ticket.answer.member_epoch
        if ticket.answer.assignment is not None:
            client.reads = frozenset(
                (topic.topic_id, index)
                for topic in ticket.answer.assignment.topic_partitions
                for index in topic.partitions
            )

    @rule(name=st.sampled_from(CLIENTS))
    def leave(self, name: str) -> None:
        client = self.clients[name]
        if client.epoch > 0:
            self.shard.beat(client.member_id, -1)
        client.stop()

    @rule(name=st.sampled_from(CLIENTS))
    def die(self, name: str) -> None:
        self.clients[name].stop()

    @rule(milliseconds=st.sampled_from((1_000, 20_000, SESSION_MS)))
    def pass_time(self, milliseconds: int) -> None:
        self.shard.pass_time(milliseconds)
        for client in self.clients.values():
            # A consumer without a response from its coordinator for a session time-out stops reading.
            if self.shard.now_ms - client.last_heard_ms >= SESSION_MS:
                client.epoch, client.reads = 0, frozenset()

    @rule(count=st.integers(1, 7))
    def grow(self, count: int) -> None:
        known = self.topics.find("orders")
        if known is not None and count > known.partition_count:
            self.topics.make("orders", count)

    @rule()
    def make_anew(self) -> None:
        self.topics.delete("bills")
        self.topics.make("bills", 1)

    @precondition(lambda self: "g" in self.shard.state.groups)
    @rule()
    def move_to_another_coordinator(self) -> None:
        before = self.shard.state.groups["g"]
        self.shard = self.shard.reloaded()
        assert self.shard.state.groups["g"] == before

    @invariant()
    def no_two_read_one_partition(self) -> None:
        reading = [partition for client in self.clients.values() for partition in client.reads]
        assert len(reading) == len(set(reading))

    @invariant()
    def no_two_members_have_one_partition(self) -> None:
        group = self.shard.state.groups.get("g")
        if isinstance(group, ConsumerGroup):
            held = [
                partition
                for member in group.members.values()
                for partition in (*member.assigned, *member.revoking)
            ]
            assert len(held) == len(set(held))

    def teardown(self) -> None:
        self.pass_time(SESSION_MS)
        running = [name for name, client in self.clients.items() if client.is_running]
        for _ in range(6):
            for name in running:
                self.beat(name, is_lost=False)
                self.no_two_read_one_partition()
        if running:
            assert self.shard.consumer_group().state is ConsumerGroupState.STABLE
            loads = [len(self.clients[name].reads) for name in running]
            orders = self.topics.find("orders")
            assert orders is not None
            assert sum(loads) == orders.partition_count + 1
            assert max(loads) - min(loads) <= 1


ConsumerGroupMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestConsumerGroups = ConsumerGroupMachine.TestCase
