"""One event in the life of a group of the new protocol: its records, applied as they are made; its timers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from odradek.coordinator.result import Answer, CoordinatorRecord, Result, StartTimer
from odradek.groups.classic.group_transition import SessionTimer, TransitionResult
from odradek.groups.consumer.consumer_group import ConsumerGroup, ConsumerMember
from odradek.groups.consumer.consumer_records import Change, apply
from odradek.groups.settings import GroupSettings
from odradek.groups.topics import Topics


@dataclass(frozen=True, slots=True)
class RevocationTimer:
    """Rings when a member has had its time to give up partitions."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RejoinTimer:
    """Rings when a classic member has had its time to join again."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class MemberSyncTimer:
    """Rings when a classic member has had its time to fetch its assignment."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class AssignmentTimer:
    """Rings when the next target assignment may be computed."""

    group_id: str


MEMBER_TIMERS = (SessionTimer, RevocationTimer, RejoinTimer, MemberSyncTimer)


class ConsumerGroupTransition(TransitionResult):
    """What happens to `group`, which is replaced step by step."""

    __slots__ = ("group", "topics")

    def __init__(self, group: ConsumerGroup, settings: GroupSettings, topics: Topics, now_ms: int) -> None:
        super().__init__(settings, now_ms)
        self.group = group
        self.topics = topics

    def write(self, change: Change) -> None:
        """Have a record written, and do to the group what replaying it will do."""
        self._records.append(change.record())
        self.group = apply(self.group, change.key, change.value) or self.group

    def write_all(self, changes: Iterable[Change]) -> None:
        """Have several written."""
        for change in changes:
            self.write(change)

    def start_timer_unless_running(self, key: Hashable, delay_ms: int) -> None:
        """Start a timer if it does not run already."""
        self._timers.append(StartTimer(key, delay_ms, lets_earlier_run=True))

    def start_session(self, member: ConsumerMember) -> None:
        """The member was heard of: its session begins anew."""
        session_timeout_ms = self.settings.consumer_session_timeout_ms
        if member.classic is not None:
            session_timeout_ms = member.classic.session_timeout_ms
        self.start_timer(SessionTimer(self.group.group_id, member.member_id), session_timeout_ms)

    def stop_member_timers(self, member_id: str) -> None:
        """The member is gone."""
        for timer in MEMBER_TIMERS:
            self.stop_timer(timer(self.group.group_id, member_id))

    @property
    def records(self) -> tuple[CoordinatorRecord, ...]:
        """What is to be written."""
        return tuple(self._records)

    def answer(self, answer: Answer) -> None:
        """Answer a request that is parked."""
        self._answers.append(answer)

    def result(self, keep: Callable[[ConsumerGroup], None], response: Any = None) -> Result[Any]:
        """All of it, for the runtime; `keep` is given the group as it is then."""
        group = self.group
        return self._result(lambda: keep(group), response)
