"""A shard of groups without loop and disk: results are carried out on a list, time is moved by hand."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from itertools import count
from typing import Any

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordinator.result import CoordinatorRecord, Result, StartTimer
from odradek.groups.classic.membership import Joining
from odradek.groups.classic_group import Group, GroupState
from odradek.groups.consumer.consumer_group import ConsumerGroup
from odradek.groups.consumer.consumer_protocol import ConsumerHeartbeat
from odradek.groups.requests import classic_requests as classic
from odradek.groups.requests import consumer_requests as consumer
from odradek.groups.settings import GroupSettings
from odradek.groups.state import GroupsState
from odradek.groups.topics import TopicInfo
from odradek.protocol.messages import (
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)

WAITING = object()
START_MS = 1_000_000


class Ticket:
    """The answer to a request, when there is one."""

    def __init__(self) -> None:
        self.answer: Any = WAITING

    @property
    def is_waiting(self) -> bool:
        return self.answer is WAITING

    @property
    def error(self) -> ErrorCode:
        return ErrorCode(self.answer.error_code)


class FakeTopics:
    """Topics that are made, grown and deleted by hand."""

    def __init__(self, **counts: int) -> None:
        self.version = 0
        self._topics: dict[str, TopicInfo] = {}
        for name, partition_count in counts.items():
            self.make(name, partition_count)

    def make(self, name: str, partition_count: int) -> None:
        self.version += 1
        known = self._topics.get(name)
        topic_id = f"{name}-{self.version}".encode().ljust(16)[:16] if known is None else known.topic_id
        self._topics[name] = TopicInfo(name, topic_id, partition_count)

    def delete(self, name: str) -> None:
        self.version += 1
        del self._topics[name]

    def find(self, name: str) -> TopicInfo | None:
        return self._topics.get(name)

    def name_of(self, topic_id: bytes) -> str | None:
        return next((one.name for one in self._topics.values() if one.topic_id == topic_id), None)

    def names(self) -> list[str]:
        return list(self._topics)


class ManualShard:
    """Does what the runtime does, at once and by hand."""

    def __init__(self, settings: GroupSettings | None = None, topics: FakeTopics | None = None) -> None:
        self.settings = settings or GroupSettings(
            initial_rebalance_delay_ms=0, consumer_assignment_interval_ms=0
        )
        self.topics = topics or FakeTopics(orders=6, bills=2)
        self.settings_by_group: dict[str, GroupSettings] = {}
        self.state = GroupsState(
            lambda: self.settings,
            self.topics,
            lambda group_id: self.settings_by_group.get(group_id, self.settings),
        )
        self.now_ms = START_MS
        self.log: list[CoordinatorRecord] = []
        self._numbers = count()
        self._alarms: list[tuple[int, int, Hashable]] = []
        self._timers: dict[Hashable, int] = {}
        self._parked: dict[Hashable, Ticket] = {}
        self._carry_out(self.state.on_loaded(self.now_ms))

    def ask(self, decide: Callable[[GroupsState, int], Result[Any]]) -> Ticket:
        ticket = Ticket()
        try:
            result = decide(self.state, self.now_ms)
        except KafkaError as error:
            ticket.answer = error
            return ticket
        if result.parked_under is not None:
            self._parked[result.parked_under] = ticket
        else:
            ticket.answer = result.response
        self._carry_out(result)
        return ticket

    def _carry_out(self, result: Result[Any]) -> None:
        self.log += result.records
        if result.on_written is not None:
            result.on_written()
        else:
            for record in result.records:
                self.state.replay(record, None)
        for change in result.timers:
            if isinstance(change, StartTimer) and change.lets_earlier_run and change.key in self._timers:
                continue
            self._timers.pop(change.key, None)
            if isinstance(change, StartTimer):
                number = self._timers[change.key] = next(self._numbers)
                heapq.heappush(self._alarms, (self.now_ms + change.delay_ms, number, change.key))
        for key, response in result.parked_responses:
            ticket = self._parked.pop(key, None)
            if ticket is not None:
                ticket.answer = response

    def pass_time(self, milliseconds: int) -> None:
        """Let timers fire in their order."""
        end_ms = self.now_ms + milliseconds
        while self._alarms and self._alarms[0][0] <= end_ms:
            at_ms, number, key = heapq.heappop(self._alarms)
            if self._timers.get(key) == number:
                del self._timers[key]
                self.now_ms = at_ms
                self._carry_out(self.state.on_timer(key, at_ms))
        self.now_ms = end_ms

    def group(self, group_id: str = "g") -> Group:
        found = self.state.groups[group_id]
        assert isinstance(found, Group)
        return found

    @property
    def group_state(self) -> GroupState:
        return self.group().state

    def reloaded(self) -> ManualShard:
        """Another coordinator that has read the same log."""
        other = ManualShard(self.settings, self.topics)
        other.now_ms = self.now_ms
        for record in self.log:
            other.state.replay(record, None)
        other.log = list(self.log)
        other._carry_out(other.state.on_loaded(other.now_ms))
        return other

    # Requests, as a client sends them

    def join(self, member_id: str = "", group_id: str = "g", **changes: Any) -> Ticket:
        joining = a_join(member_id, new_member_id=f"new-{next(self._numbers)}", **changes)
        return self.ask(lambda state, now_ms: classic.join(state, group_id, joining, now_ms))

    def enter(self, **changes: Any) -> tuple[str, Ticket]:
        """A dynamic member asks for an id, and joins with it."""
        member_id = self.join(**changes).answer.member_id
        return member_id, self.join(member_id, **changes)

    def sync(
        self, member_id: str, generation_id: int, assignments: dict[str, bytes] | None = None, **fields: Any
    ) -> Ticket:
        request = SyncGroupRequest(
            group_id="g",
            member_id=member_id,
            generation_id=generation_id,
            assignments=[
                SyncGroupRequest.Assignments(member_id=one, assignment=given)
                for one, given in (assignments or {}).items()
            ],
            **fields,
        )
        return self.ask(lambda state, now_ms: classic.sync(state, request, now_ms))

    def heartbeat(self, member_id: str, generation_id: int, **fields: Any) -> Ticket:
        request = HeartbeatRequest(group_id="g", member_id=member_id, generation_id=generation_id, **fields)
        return self.ask(lambda state, now_ms: classic.heartbeat(state, request, now_ms))

    def leave(self, member_id: str, group_instance_id: str | None = None) -> ErrorCode:
        leaving = LeaveGroupRequest.Members(member_id=member_id, group_instance_id=group_instance_id)
        request = LeaveGroupRequest(group_id="g", members=[leaving])
        answer = self.ask(lambda state, now_ms: classic.leave(state, request, now_ms)).answer
        return ErrorCode(answer.error_code or answer.members[0].error_code)

    # Requests of the new protocol

    def beat(self, member_id: str, member_epoch: int, **fields: Any) -> Ticket:
        beat = ConsumerHeartbeat(member_id, member_epoch, **fields)
        return self.ask(lambda state, now_ms: consumer.heartbeat(state, "g", beat, now_ms))

    def enter_consumer(self, member_id: str, *topics: str, **fields: Any) -> Ticket:
        """A member of the new protocol joins."""
        fields = {"rebalance_timeout_ms": 60_000, "owned": frozenset(), **fields}
        return self.beat(member_id, 0, topics=frozenset(topics), **fields)

    def consumer_group(self) -> ConsumerGroup:
        found = self.state.groups["g"]
        assert isinstance(found, ConsumerGroup)
        return found

    def stable(self, *names: str, **changes: Any) -> list[str]:
        """A group of that many members, all synced; the first one leads. Each is assigned its name."""
        ids: list[str] = []
        for _ in names:
            ids.append(self.enter(**changes)[0])
            for member_id in ids[:-1]:
                self.join(member_id, **changes)
        generation_id = self.group().generation_id
        given = {one: name.encode() for one, name in zip(ids, names, strict=True)}
        for member_id in reversed(ids):
            self.sync(member_id, generation_id, given if member_id == ids[0] else None)
        assert self.group_state is GroupState.STABLE
        return ids


def a_join(member_id: str = "", **changes: Any) -> Joining:
    """A JoinGroup of a consumer of `orders`, with some fields changed."""
    fields: dict[str, Any] = {
        "member_id": member_id,
        "group_instance_id": None,
        "client_id": "client",
        "client_host": "/127.0.0.1",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": (("range", a_subscription("orders")),),
        "new_member_id": "new",
    }
    return Joining(**(fields | changes))


def a_subscription(*topics: str) -> bytes:
    return b"\0\0" + ConsumerProtocolSubscription(topics=list(topics)).encode(0)
