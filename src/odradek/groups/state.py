"""The groups and offsets of one partition of `__consumer_offsets`: replayed from records, kept by turns."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from odradek.common.ids import TopicPartition
from odradek.coordinator.result import CoordinatorRecord, Result, StartTimer, StopTimer
from odradek.groups import membership, rebalance
from odradek.groups.committed_offsets import CommittedOffsets
from odradek.groups.errors import GroupIdNotFound
from odradek.groups.expiry import expire
from odradek.groups.group import Group
from odradek.groups.records import CODEC, committed_of, group_of
from odradek.groups.settings import GroupSettings
from odradek.groups.turn import JoinTimer, SessionTimer, SyncTimer, Turn
from odradek.protocol.messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
)

logger = logging.getLogger(__name__)


class ExpiryTimer(NamedTuple):
    """Rings when the offsets are to be looked over."""


class GroupsState:
    """Groups and offsets by group id. Owned by its shard: decisions read it, their results change it."""

    def __init__(self, settings: Callable[[], GroupSettings]) -> None:
        self._settings = settings
        self.groups: dict[str, Group] = {}
        self.offsets = CommittedOffsets()

    @property
    def settings(self) -> GroupSettings:
        """The settings of now."""
        return self._settings()

    def find(self, group_id: str) -> Group | None:
        """The group, if there is one."""
        return self.groups.get(group_id)

    def get(self, group_id: str) -> Group:
        """The group; GroupIdNotFound if there is none."""
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        return group

    def keep(self, group: Group) -> None:
        """Take over what a decision made of a group."""
        self.groups[group.group_id] = group

    def turn(self, group: Group, now_ms: int) -> Turn:
        """Begin an event in the life of a group."""
        return Turn(group, self.settings, now_ms)

    # Replay

    def replay(self, record: CoordinatorRecord, producer_id: int | None) -> None:
        """Take over one record of the log."""
        decoded = CODEC.decode(*record)
        if decoded is None:
            logger.warning("a record of an unknown type is left out: key %s", record.key.hex())
            return
        key: Any = decoded.key
        value: Any = decoded.value
        if isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey):
            committed = None if value is None else committed_of(value)
            self._replay_offset(key.group, TopicPartition(key.topic, key.partition), committed, producer_id)
        elif isinstance(key, GroupMetadataKey):
            self._replay_group(key.group, value)

    def _replay_offset(
        self, group_id: str, partition: TopicPartition, committed: Any, producer_id: int | None
    ) -> None:
        if committed is not None and group_id not in self.groups:
            # Offsets of a consumer without group management; the group has no record of its own.
            self.groups[group_id] = Group(group_id)
        if producer_id is None:
            self.offsets.put(group_id, partition, committed)
        else:
            self.offsets.put_pending(producer_id, group_id, partition, committed)

    def _replay_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        if value is None:
            self.groups.pop(group_id, None)
        else:
            self.groups[group_id] = group_of(group_id, value)

    def replay_end_of_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """A producer's transaction has ended."""
        self.offsets.end_transaction(producer_id, is_commit=is_commit)

    # Time

    def on_loaded(self, now_ms: int) -> Result[None]:
        """Every member has a whole session from now on; offsets are looked over by and by."""
        timers: list[StartTimer | StopTimer] = [self._next_expiry()]
        for group in self.groups.values():
            timers.extend(
                StartTimer(SessionTimer(group.group_id, member.member_id), member.session_timeout_ms)
                for member in group.members.values()
            )
        return Result(timers=tuple(timers))

    def on_timer(self, key: Any, now_ms: int) -> Result[None]:
        """A session, a phase of a rebalance, or the time between two looks at the offsets is over."""
        if isinstance(key, ExpiryTimer):
            return self._expire_offsets(now_ms)
        group = self.groups.get(key.group_id)
        if not isinstance(group, Group):
            return Result()
        turn = self.turn(group, now_ms)
        match key:
            case SessionTimer():
                membership.session_over(turn, key.member_id)
            case JoinTimer():
                rebalance.join_time_over(turn)
            case SyncTimer():
                rebalance.sync_time_over(turn)
        return turn.result(self.keep)

    def _expire_offsets(self, now_ms: int) -> Result[None]:
        records: list[CoordinatorRecord] = []
        for group_id in {*self.groups, *self.offsets}:
            records += expire(
                self.groups.get(group_id),
                group_id,
                self.offsets,
                retention_ms=self.settings.offsets_retention_ms,
                now_ms=now_ms,
            )
        return Result(records=tuple(records), timers=(self._next_expiry(),))

    def _next_expiry(self) -> StartTimer:
        return StartTimer(ExpiryTimer(), self.settings.offsets_retention_check_interval_ms)
