"""Collects what one event does to one group: new state, records, responses and timers.

The keys of parked requests and timers are dataclasses, since tuples of different classes are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from odradek.coordinator.result import CoordinatorRecord, ParkedResponse, Result, StartTimer, StopTimer
from odradek.groups.classic_group import Group, Member
from odradek.groups.settings import GroupSettings
from odradek.protocol.messages import JoinGroupResponse, SyncGroupResponse


@dataclass(frozen=True, slots=True)
class WaitingJoin:
    """Key of a parked JoinGroup."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class WaitingSync:
    """Key of a parked SyncGroup."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class SessionTimer:
    """Fires when a member, or a pending member id, sent nothing for the session timeout."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class JoinTimer:
    """Fires when the time to join is over."""

    group_id: str


@dataclass(frozen=True, slots=True)
class SyncTimer:
    """Fires when the time to sync is over."""

    group_id: str


class TransitionResult:
    """The records, responses and timers of one event, collected step by step; used for one event only.

    Nothing else changes until the runtime applies the result, so that an exception leaves no trace.
    """

    __slots__ = ("_records", "_responses", "_timers", "now_ms", "settings")

    def __init__(self, settings: GroupSettings, now_ms: int) -> None:
        self.settings = settings
        self.now_ms = now_ms
        self._records: list[CoordinatorRecord] = []
        self._responses: list[ParkedResponse] = []
        self._timers: list[StartTimer | StopTimer] = []

    def write_before(self, records: Iterable[CoordinatorRecord]) -> None:
        """Write records before all others, such as the tombstone of another group."""
        self._records[:0] = records

    def start_timer(self, key: Hashable, delay_ms: int) -> None:
        """Start or restart a timer."""
        self._timers.append(StartTimer(key, delay_ms))

    def stop_timer(self, key: Hashable) -> None:
        """Stop a timer, if it runs."""
        self._timers.append(StopTimer(key))

    def _result(
        self, on_written: Callable[[], None], response: Any, parked_under: Hashable | None = None
    ) -> Result[Any]:
        return Result(
            response=response,
            records=tuple(self._records),
            on_written=on_written,
            timers=tuple(self._timers),
            parked_responses=tuple(self._responses),
            parked_under=parked_under,
        )


class GroupTransition(TransitionResult):
    """An event of `group`, which is replaced step by step."""

    __slots__ = ("group",)

    def __init__(self, group: Group, settings: GroupSettings, now_ms: int) -> None:
        super().__init__(settings, now_ms)
        self.group = group

    def write(self, record: CoordinatorRecord) -> None:
        """Write a record."""
        self._records.append(record)

    def start_session(self, member: Member) -> None:
        """Restart the session of a member that sent a request."""
        self.start_timer(SessionTimer(self.group.group_id, member.member_id), member.session_timeout_ms)

    def respond_to_join(self, member: Member, response: JoinGroupResponse) -> None:
        """Respond to a member's parked JoinGroup."""
        self._responses.append(ParkedResponse(WaitingJoin(self.group.group_id, member.member_id), response))
        self.update(replace(member, is_awaiting_join=False))

    def respond_to_sync(self, member: Member, response: SyncGroupResponse) -> None:
        """Respond to a member's parked SyncGroup."""
        self._responses.append(ParkedResponse(WaitingSync(self.group.group_id, member.member_id), response))
        self.update(replace(member, is_awaiting_sync=False))

    def update(self, member: Member) -> None:
        """Replace a member."""
        self.group = self.group.with_member(member)

    def result(
        self, keep: Callable[[Group], None], response: Any = None, parked_under: Hashable | None = None
    ) -> Result[Any]:
        """The result for the runtime; `keep` is called with the group's final value."""
        group = self.group
        return self._result(lambda: keep(group), response, parked_under)
