"""The groups and offsets of one partition of `__consumer_offsets`, replayed from its records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from odradek.common.ids import TopicPartition
from odradek.coordinator.result import CoordinatorRecord, Result, StartTimer, StopTimer
from odradek.groups.classic import membership, rebalance
from odradek.groups.classic.group_transition import GroupTransition, JoinTimer, SessionTimer, SyncTimer
from odradek.groups.classic_group import Group
from odradek.groups.committed_offsets import CommittedOffsets
from odradek.groups.consumer import consumer_protocol, migration
from odradek.groups.consumer.consumer_group import ConsumerGroup, MemberState
from odradek.groups.consumer.consumer_records import CONSUMER_KEYS, apply
from odradek.groups.consumer.consumer_transition import (
    AssignmentTimer,
    ConsumerGroupTransition,
    RevocationTimer,
)
from odradek.groups.errors import GroupIdNotFound
from odradek.groups.expiry import expire
from odradek.groups.records import CODEC, committed_of, group_of
from odradek.groups.settings import GroupSettings
from odradek.groups.topics import NoTopics, Topics
from odradek.protocol.messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
)

logger = logging.getLogger(__name__)

AnyGroup = Group | ConsumerGroup


@dataclass(frozen=True, slots=True)
class ExpiryTimer:
    """Fires when expired offsets are to be removed."""


class GroupsState:
    """Groups and offsets by group id. Owned by its shard: operations read it, their results change it."""

    def __init__(
        self,
        settings: Callable[[], GroupSettings],
        topics: Topics | None = None,
        settings_of: Callable[[str], GroupSettings] | None = None,
    ) -> None:
        self._settings = settings
        self._settings_of = settings_of or (lambda _: settings())
        self.topics = topics or NoTopics()
        self.groups: dict[str, AnyGroup] = {}
        self.offsets = CommittedOffsets()

    @property
    def settings(self) -> GroupSettings:
        """The current settings."""
        return self._settings()

    def settings_of(self, group_id: str) -> GroupSettings:
        """The current settings for one group, which may override those of the consumer protocol."""
        return self._settings_of(group_id)

    def find(self, group_id: str) -> AnyGroup | None:
        """The group, if there is one."""
        return self.groups.get(group_id)

    def get(self, group_id: str) -> AnyGroup:
        """The group; GroupIdNotFound if there is none."""
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        return group

    def keep(self, group: AnyGroup) -> None:
        """Store the result of an operation."""
        self.groups[group.group_id] = group

    def transition(self, group: Group, now_ms: int) -> GroupTransition:
        """Begin an event of a classic group."""
        return GroupTransition(group, self.settings, now_ms)

    def consumer_transition(self, group: ConsumerGroup, now_ms: int) -> ConsumerGroupTransition:
        """Begin an event of a group of the consumer protocol."""
        return ConsumerGroupTransition(group, self.settings_of(group.group_id), self.topics, now_ms)

    def remove(
        self, group: ConsumerGroup, member_ids: Collection[str], now_ms: int, response: Any = None
    ) -> Result[Any]:
        """Remove members of a consumer group; it is downgraded if only classic members are left."""
        if migration.may_downgrade(group, self.settings, without=member_ids):
            transition = migration.downgrade(group, self.settings, self.topics, now_ms, without=member_ids)
            return transition.result(self.keep, response)
        consumer_transition = self.consumer_transition(group, now_ms)
        consumer_protocol.remove(consumer_transition, member_ids)
        return consumer_transition.result(self.keep, response)

    # Replay

    def replay(self, record: CoordinatorRecord, producer_id: int | None) -> None:
        """Apply one record of the log."""
        decoded = CODEC.decode(*record)
        if decoded is None:
            logger.warning("skipped a record of unknown type: key %s", record.key.hex())
            return
        key: Any = decoded.key
        value: Any = decoded.value
        if isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey):
            committed = None if value is None else committed_of(value)
            self._replay_offset(key.group, TopicPartition(key.topic, key.partition), committed, producer_id)
        elif isinstance(key, GroupMetadataKey):
            self._replay_group(key.group, value)
        elif isinstance(key, CONSUMER_KEYS):
            self._replay_consumer_group(key.group_id, key, value)

    def _replay_offset(
        self, group_id: str, partition: TopicPartition, committed: Any, producer_id: int | None
    ) -> None:
        if committed is not None and group_id not in self.groups:
            # Offsets of a consumer without group management; the group has no record.
            self.groups[group_id] = Group(group_id)
        if producer_id is None:
            self.offsets.put(group_id, partition, committed)
        else:
            self.offsets.put_pending(producer_id, group_id, partition, committed)

    def _replay_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        if value is not None:
            self.groups[group_id] = group_of(group_id, value)
        elif isinstance(self.groups.get(group_id), Group):
            del self.groups[group_id]

    def _replay_consumer_group(self, group_id: str, key: Any, value: Any) -> None:
        known = self.groups.get(group_id)
        if not isinstance(known, ConsumerGroup):
            if value is None:
                return
            known = ConsumerGroup(group_id)
        after = apply(known, key, value)
        if after is None:
            del self.groups[group_id]
        else:
            self.groups[group_id] = after

    def replay_end_of_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Apply or discard the offsets of a transaction that has ended."""
        self.offsets.end_transaction(producer_id, is_commit=is_commit)

    # Time

    def on_loaded(self, now_ms: int) -> Result[None]:
        """Start the sessions of all members, and the timer for expired offsets."""
        timers: list[StartTimer | StopTimer] = [self._next_expiry()]
        for group in self.groups.values():
            timers += self._timers_of(group)
        return Result(timers=tuple(timers))

    def _timers_of(self, group: AnyGroup) -> list[StartTimer]:
        if isinstance(group, Group):
            return [
                StartTimer(SessionTimer(group.group_id, member.member_id), member.session_timeout_ms)
                for member in group.members.values()
            ]
        timers, settings = [], self.settings_of(group.group_id)
        for member in group.members.values():
            names, classic = (group.group_id, member.member_id), member.classic
            session_ms = settings.consumer_session_timeout_ms if classic is None else classic[0]
            timers.append(StartTimer(SessionTimer(*names), session_ms))
            if classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
                timers.append(StartTimer(RevocationTimer(*names), member.rebalance_timeout_ms))
        return timers

    def on_timer(self, key: Any, now_ms: int) -> Result[None]:
        """Handle a session, rebalance or expiry timer."""
        if isinstance(key, ExpiryTimer):
            return self._expire_offsets(now_ms)
        group = self.groups.get(key.group_id)
        if isinstance(group, ConsumerGroup):
            return self._on_consumer_timer(group, key, now_ms)
        return Result() if group is None else self._on_classic_timer(group, key, now_ms)

    def _on_classic_timer(self, group: Group, key: Any, now_ms: int) -> Result[None]:
        transition = self.transition(group, now_ms)
        match key:
            case SessionTimer():
                membership.on_session_timeout(transition, key.member_id)
            case JoinTimer():
                rebalance.on_join_timeout(transition)
            case SyncTimer():
                rebalance.on_sync_timeout(transition)
        return transition.result(self.keep)

    def _on_consumer_timer(self, group: ConsumerGroup, key: Any, now_ms: int) -> Result[None]:
        if isinstance(key, AssignmentTimer):
            transition = self.consumer_transition(group, now_ms)
            consumer_protocol.assign_if_due(transition)
            return transition.result(self.keep)
        if isinstance(key, JoinTimer | SyncTimer) or key.member_id not in group.members:
            return Result()
        return self.remove(group, [key.member_id], now_ms)

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
