"""Collects what one event does to a group of the consumer protocol: applied records, and timers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from odradek.coordinator.result import CoordinatorRecord, ParkedResponse, Result, StartTimer
from odradek.groups.classic.group_transition import SessionTimer, TransitionResult
from odradek.groups.consumer.consumer_group import ConsumerGroup, ConsumerMember
from odradek.groups.consumer.consumer_records import Change, apply
from odradek.groups.settings import GroupSettings
from odradek.groups.topics import Topics


@dataclass(frozen=True, slots=True)
class RevocationTimer:
    """Fires when the time to revoke partitions is over."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RejoinTimer:
    """Fires when the time of a classic member to rejoin is over."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class MemberSyncTimer:
    """Fires when the time of a classic member to sync is over."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class AssignmentTimer:
    """Fires when the next target assignment may be computed."""

    group_id: str


MEMBER_TIMERS = (SessionTimer, RevocationTimer, RejoinTimer, MemberSyncTimer)


class ConsumerGroupTransition(TransitionResult):
    """An event of `group`, which is replaced step by step."""

    __slots__ = ("group", "topics")

    def __init__(self, group: ConsumerGroup, settings: GroupSettings, topics: Topics, now_ms: int) -> None:
        super().__init__(settings, now_ms)
        self.group = group
        self.topics = topics

    def write(self, change: Change) -> None:
        """Write a record, and apply it to the group as its replay does."""
        self._records.append(change.record())
        self.group = apply(self.group, change.key, change.value) or self.group

    def write_all(self, changes: Iterable[Change]) -> None:
        """Write several records."""
        for change in changes:
            self.write(change)

    def start_timer_unless_running(self, key: Hashable, delay_ms: int) -> None:
        """Start a timer unless it is running."""
        self._timers.append(StartTimer(key, delay_ms, lets_earlier_run=True))

    def start_session(self, member: ConsumerMember) -> None:
        """Restart the session of a member that sent a request."""
        session_timeout_ms = self.settings.consumer_session_timeout_ms
        if member.classic is not None:
            session_timeout_ms = member.classic.session_timeout_ms
        self.start_timer(SessionTimer(self.group.group_id, member.member_id), session_timeout_ms)

    def stop_member_timers(self, member_id: str) -> None:
        """Stop all timers of a member that was removed."""
        for timer in MEMBER_TIMERS:
            self.stop_timer(timer(self.group.group_id, member_id))

    @property
    def records(self) -> tuple[CoordinatorRecord, ...]:
        """The records to write."""
        return tuple(self._records)

    def answer(self, answer: ParkedResponse) -> None:
        """Respond to a parked request."""
        self._responses.append(answer)

    def result(self, keep: Callable[[ConsumerGroup], None], response: Any = None) -> Result[Any]:
        """The result for the runtime; `keep` is called with the group's final value."""
        group = self.group
        return self._result(lambda: keep(group), response)
