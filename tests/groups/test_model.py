"""Classic groups under any order of joins, syncs, heartbeats, departures and passing time, beside a model.

The model knows only what a client knows: what it has got last. The promises are checked after every step.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from groups.given_groups import ManualShard, Ticket
from odradek.common.error_codes import ErrorCode
from odradek.groups.classic_group import GroupState
from odradek.groups.settings import GroupSettings

pytestmark = pytest.mark.slow  # each of them takes a second or more

CLIENTS = ("a", "b", "c", "d")
SESSION_MS, REBALANCE_MS = 10_000, 30_000


class ModelClient:
    """A member as it sees itself: its id, its generation, and the request that it waits for."""

    def __init__(self, instance_id: str | None) -> None:
        self.instance_id = instance_id
        self.member_id = ""
        self.generation_id = -1
        self.is_leader = False
        self.members: list[str] = []
        self.waiting: Ticket | None = None
        self.is_synced = False

    def forget(self) -> None:
        self.__init__(self.instance_id)  # type: ignore[misc]


class GroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.shard = ManualShard(GroupSettings(initial_rebalance_delay_ms=0))
        self.clients = {name: ModelClient("static" if name == "d" else None) for name in CLIENTS}

    # What clients do

    @rule(name=st.sampled_from(CLIENTS))
    def join(self, name: str) -> None:
        client = self.clients[name]
        if client.waiting is not None:
            return
        fields = {"group_instance_id": client.instance_id, "rebalance_timeout_ms": REBALANCE_MS}
        ticket = self.shard.join(client.member_id, session_timeout_ms=SESSION_MS, **fields)
        if not ticket.is_waiting and ticket.error is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = ticket.answer.member_id
            ticket = self.shard.join(client.member_id, session_timeout_ms=SESSION_MS, **fields)
        client.waiting, client.is_synced = ticket, False
        self.look()

    @rule(name=st.sampled_from(CLIENTS))
    def sync(self, name: str) -> None:
        client = self.clients[name]
        if client.waiting is not None or client.generation_id < 0 or client.is_synced:
            return
        given = {one: f"{client.generation_id} {one}".encode() for one in client.members}
        client.waiting = self.shard.sync(
            client.member_id,
            client.generation_id,
            given if client.is_leader else None,
            group_instance_id=client.instance_id,
        )
        self.look()

    @rule(name=st.sampled_from(CLIENTS))
    def heartbeat(self, name: str) -> None:
        client = self.clients[name]
        if client.waiting is not None or client.generation_id < 0:
            return
        ticket = self.shard.heartbeat(
            client.member_id, client.generation_id, group_instance_id=client.instance_id
        )
        group = self.shard.group()
        if ticket.error is ErrorCode.NONE:
            assert client.member_id in group.members
            assert client.generation_id == group.generation_id
            assert group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE)
        elif ticket.error is not ErrorCode.REBALANCE_IN_PROGRESS:
            client.forget()

    @rule(name=st.sampled_from(CLIENTS))
    def leave(self, name: str) -> None:
        client = self.clients[name]
        if client.waiting is None and client.member_id:
            self.shard.leave(client.member_id, client.instance_id)
            client.forget()
            self.look()

    @rule(name=st.sampled_from(CLIENTS))
    def die(self, name: str) -> None:
        """The process is killed; the coordinator notices by a time-out, or when the client joins again."""
        self.clients[name].forget()

    @rule(milliseconds=st.sampled_from((1, 3_000, SESSION_MS, REBALANCE_MS)))
    def pass_time(self, milliseconds: int) -> None:
        self.shard.pass_time(milliseconds)
        self.look()

    @precondition(lambda self: "g" in self.shard.state.groups)
    @rule()
    def move_to_another_coordinator(self) -> None:
        for client in self.clients.values():
            client.waiting = None
        self.shard = self.shard.reloaded()

    # What they receive

    def look(self) -> None:
        for client in self.clients.values():
            if client.waiting is not None and not client.waiting.is_waiting:
                ticket, client.waiting = client.waiting, None
                self.receive(client, ticket)

    def receive(self, client: ModelClient, ticket: Ticket) -> None:
        if ticket.error is ErrorCode.REBALANCE_IN_PROGRESS:
            client.is_synced = False
        elif ticket.error is not ErrorCode.NONE:
            client.forget()
        elif hasattr(ticket.answer, "leader"):
            client.member_id = ticket.answer.member_id
            client.generation_id = ticket.answer.generation_id
            client.is_leader = ticket.answer.leader == client.member_id and not ticket.answer.skip_assignment
            client.members = [member.member_id for member in ticket.answer.members]
        else:
            client.is_synced = True
            generation_id, _, owner = ticket.answer.assignment.decode().partition(" ")
            if owner:
                assert int(generation_id) == client.generation_id, "an assignment of another generation"
                is_static = client.instance_id is not None
                assert owner == client.member_id or is_static, "an assignment of somebody else"

    # What is always so

    @invariant()
    def a_generation_has_one_leader_who_belongs_to_it(self) -> None:
        group = self.shard.state.groups.get("g")
        if group is None:
            return
        assert (group.state is GroupState.EMPTY) == (not group.members)
        if group.members:
            assert group.leader_id in group.members
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            leaders = [
                client.member_id
                for client in self.clients.values()
                if client.is_leader and client.generation_id == group.generation_id
            ]
            # A move of the coordinator forgets members that were never assigned anything.
            assert {one for one in leaders if one in group.members} <= {group.leader_id}
            assert group.protocol_name == "range"

    @invariant()
    def no_request_waits_for_ever(self) -> None:
        """Whoever is parked is a member that the group waits with; the state says for what."""
        group = self.shard.state.groups.get("g")
        if group is None:
            return
        for member in group.members.values():
            if member.is_awaiting_join:
                assert group.state is GroupState.PREPARING_REBALANCE
            if member.is_awaiting_sync:
                assert group.state is GroupState.COMPLETING_REBALANCE

    def teardown(self) -> None:
        """Without heartbeats, all members time out."""
        self.shard.pass_time(400_000)
        group = self.shard.state.groups.get("g")
        assert group is None or group.state is GroupState.EMPTY
        self.look()
        assert all(client.waiting is None for client in self.clients.values())


GroupMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestGroups = GroupMachine.TestCase
