"""One event in the life of one group: what it changes, writes, answers and times is collected here.

The keys of parked requests and timers are dataclasses, since tuples of different classes are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from odradek.coordinator.result import Answer, CoordinatorRecord, Result, StartTimer, StopTimer
from odradek.groups.classic_group import Group, Member
from odradek.groups.settings import GroupSettings
from odradek.protocol.messages import JoinGroupResponse, SyncGroupResponse


@dataclass(frozen=True, slots=True)
class WaitingJoin:
    """A JoinGroup that is parked."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class WaitingSync:
    """A SyncGroup that is parked."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class SessionTimer:
    """Rings when a member, or one who was given an id, was silent for too long."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class JoinTimer:
    """Rings when the members have had their time to join."""

    group_id: str


@dataclass(frozen=True, slots=True)
class SyncTimer:
    """Rings when the members have had their time to ask for their assignment."""

    group_id: str


class TransitionResult:
    """What one event writes, answers and times, collected step by step. Made for one event and thrown away.

    Nothing outside changes until it is carried out, so that an exception in between leaves no trace.
    """

    __slots__ = ("_answers", "_records", "_timers", "now_ms", "settings")

    def __init__(self, settings: GroupSettings, now_ms: int) -> None:
        self.settings = settings
        self.now_ms = now_ms
        self._records: list[CoordinatorRecord] = []
        self._answers: list[Answer] = []
        self._timers: list[StartTimer | StopTimer] = []

    def write_before(self, records: Iterable[CoordinatorRecord]) -> None:
        """Have records written ahead of all others, such as the end of another group."""
        self._records[:0] = records

    def start_timer(self, key: Hashable, delay_ms: int) -> None:
        """Start a timer anew."""
        self._timers.append(StartTimer(key, delay_ms))

    def stop_timer(self, key: Hashable) -> None:
        """Stop a timer, if it runs."""
        self._timers.append(StopTimer(key))

    def _result(
        self, on_written: Callable[[], None], response: Any, parks_under: Hashable | None = None
    ) -> Result[Any]:
        return Result(
            response=response,
            records=tuple(self._records),
            on_written=on_written,
            timers=tuple(self._timers),
            answers=tuple(self._answers),
            parks_under=parks_under,
        )


class GroupTransition(TransitionResult):
    """What happens to `group`, which is replaced step by step."""

    __slots__ = ("group",)

    def __init__(self, group: Group, settings: GroupSettings, now_ms: int) -> None:
        super().__init__(settings, now_ms)
        self.group = group

    def write(self, record: CoordinatorRecord) -> None:
        """Have a record written."""
        self._records.append(record)

    def start_session(self, member: Member) -> None:
        """The member was heard of: its session begins anew."""
        self.start_timer(SessionTimer(self.group.group_id, member.member_id), member.session_timeout_ms)

    def answer_join(self, member: Member, response: JoinGroupResponse) -> None:
        """Answer a member's parked JoinGroup."""
        self._answers.append(Answer(WaitingJoin(self.group.group_id, member.member_id), response))
        self.update(replace(member, is_awaiting_join=False))

    def answer_sync(self, member: Member, response: SyncGroupResponse) -> None:
        """Answer a member's parked SyncGroup."""
        self._answers.append(Answer(WaitingSync(self.group.group_id, member.member_id), response))
        self.update(replace(member, is_awaiting_sync=False))

    def update(self, member: Member) -> None:
        """Put this value in the place of the member."""
        self.group = self.group.with_member(member)

    def result(
        self, keep: Callable[[Group], None], response: Any = None, parks_under: Hashable | None = None
    ) -> Result[Any]:
        """All of it, for the runtime; `keep` is given the group as it is then."""
        group = self.group
        return self._result(lambda: keep(group), response, parks_under)
