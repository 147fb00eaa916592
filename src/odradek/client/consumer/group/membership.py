"""A member of a classic group: join, assign if it leads, synchronise, send heartbeats, leave.

    join  ->  (lead: assign)  ->  sync  ->  stay, with heartbeats  ->  join again
      ^                                          |
      +--- rebalance, other topics, lost ---------+

The consumer implements `GroupOwner`, which is notified of revoked and assigned partitions; that may be slow,
since it calls rebalance listeners.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Collection, Coroutine
from typing import Any, Protocol

from odradek.assignors.subscription import NO_GENERATION, Subscription
from odradek.client.broker_errors import check
from odradek.client.committed_offsets import MemberIdentity
from odradek.client.consumer.config import ConsumerConfig
from odradek.client.consumer.first_contact import FirstContact
from odradek.client.consumer.group.consumer_protocol import (
    ASSIGNORS,
    PROTOCOL_TYPE,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from odradek.client.consumer.group.group_offsets import GroupOffsets
from odradek.client.errors import BrokerError, ClientError, is_retriable
from odradek.client.network.backoff import Backoff
from odradek.client.network.brokers import Brokers
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

SLACK_MS = 5000
"""Added to the rebalance time-out, as the time for the response to a join."""
FIRST_LEAVE_WITH_MEMBERS = 3

# The coordinator does not know this member or generation.
LOST = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
# Expected while the group is being rebalanced.
REBALANCING = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED})

_log = logging.getLogger("odradek.consumer")


class GroupOwner(Protocol):
    """The consumer, as seen by a membership."""

    def topics(self) -> frozenset[str]:
        """The subscribed topics."""

    def topic_regex(self) -> str | None:
        """The pattern that the broker matches, if it supports that."""

    def assigned(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""

    def poll_deadline_ms(self) -> float:
        """The deadline of the next poll, by the monotonic clock."""

    async def revoke(self, partitions: Collection[TopicPartition], *, is_lost: bool) -> None:
        """Revoke partitions; lost ones may have another owner already."""

    async def assign_more(self, partitions: Collection[TopicPartition]) -> None:
        """Add partitions."""

    def fail(self, error: BaseException) -> None:
        """The next poll raises this."""


class ClassicMembership:
    """One member. `run` stops only with an error that is not retriable, or when cancelled."""

    def __init__(
        self, config: ConsumerConfig, brokers: Brokers, offsets: GroupOffsets, owner: GroupOwner
    ) -> None:
        assert config.group_id is not None
        self._config = config
        self._group_id = config.group_id
        self._brokers = brokers
        self._offsets = offsets
        self._owner = owner
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self._contact = FirstContact(f"joining group {config.group_id}", config.default_api_timeout_ms)
        self._member_id = ""
        self._generation_id = NO_GENERATION
        self._must_rejoin = asyncio.Event()
        # Cleared while the next generation is being determined; set before the first one.
        self.has_joined = asyncio.Event()
        self.has_joined.set()
        self._leads_with: dict[str, int] | None = None  # as leader: the partition counts it assigned by
        self._joined_topics: frozenset[str] = frozenset()
        self._former: tuple[tuple[TopicPartition, ...], int] = ((), NO_GENERATION)

    @property
    def identity(self) -> MemberIdentity:
        """The member in commit requests."""
        return MemberIdentity(self._member_id, self._generation_id, self._config.group_instance_id)

    def rejoin(self) -> None:
        """Join again: the subscription has changed."""
        self._must_rejoin.set()

    async def run(self) -> None:
        """Join, and stay a member."""
        failures = 0
        while True:
            try:
                await self._wait_for_polls()
                await self._join()
                failures = 0
                self._contact.succeeded()
                await self._send_heartbeats()
            except (BrokerError, ClientError) as error:
                self._offsets.forget_coordinator_after(error)
                if isinstance(error, BrokerError) and error.error_code in LOST:
                    await self._reset_generation(error.error_code == ErrorCode.UNKNOWN_MEMBER_ID)
                elif isinstance(error, BrokerError) and error.error_code in REBALANCING:
                    continue
                elif not is_retriable(error):
                    raise
                _log.debug("group %s: %s", self._group_id, error)
                failures += 1
                timed_out = self._contact.failed(error, time.monotonic() * 1000)
                if timed_out is not None:
                    self._owner.fail(timed_out)
                await asyncio.sleep(self._backoff.pause_ms(failures, random.random()) / 1000)

    async def _wait_for_polls(self) -> None:
        """Do not join before the consumer polls again."""
        while self._owner.poll_deadline_ms() <= time.monotonic() * 1000:
            await asyncio.sleep(min(100, self._config.retry_backoff_ms) / 1000)

    async def _reset_generation(self, also_id: bool) -> None:
        if also_id:
            self._member_id = ""
        self._generation_id = NO_GENERATION
        self._former = ((), NO_GENERATION)
        await self._owner.revoke(self._owner.assigned(), is_lost=True)

    # Joining.

    async def _join(self) -> None:
        await self._prepare()
        self._must_rejoin.clear()
        self._leads_with = None
        self._joined_topics = self._owner.topics()
        self.has_joined.clear()
        try:
            assigned = await self._join_and_sync()
        finally:
            self.has_joined.set()
        await self._apply(assigned)

    async def _join_and_sync(self) -> frozenset[TopicPartition]:
        joined = await self._send_join()
        self._generation_id = joined.generation_id
        assignments = await self._assign(joined) if joined.leader == joined.member_id else []
        sync = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=joined.generation_id,
            member_id=self._member_id,
            assignments=assignments,
        )
        if self._config.group_instance_id is not None:
            sync.group_instance_id = self._config.group_instance_id
        sync.protocol_type, sync.protocol_name = PROTOCOL_TYPE, joined.protocol_name
        connection = await self._offsets.connection()
        response = await connection.send_request(sync, SyncGroupResponse, timeout_ms=self._longest_wait_ms)
        check(response.error_code)
        return read_assignment(response.assignment)

    async def _prepare(self) -> None:
        """Before an eager rebalance everything is revoked; a cooperative member keeps its partitions."""
        owned = self._owner.assigned()
        self._former = (tuple(sorted(owned)), self._generation_id) if owned else self._former
        unwanted = owned
        if self._config.is_cooperative:
            topics = self._owner.topics()
            unwanted = frozenset(partition for partition in owned if partition.topic not in topics)
        await self._with_heartbeats(self._owner.revoke(unwanted, is_lost=False))

    @property
    def _longest_wait_ms(self) -> int:
        return max(self._config.max_poll_interval_ms + SLACK_MS, self._config.request_timeout_ms)

    async def _send_join(self) -> JoinGroupResponse:
        connection = await self._offsets.connection()
        while True:
            request = JoinGroupRequest(
                group_id=self._group_id,
                session_timeout_ms=self._config.session_timeout_ms,
                rebalance_timeout_ms=self._config.max_poll_interval_ms,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=self._protocols(),
            )
            if self._config.group_instance_id is not None:
                request.group_instance_id = self._config.group_instance_id
            response = await connection.send_request(
                request, JoinGroupResponse, timeout_ms=self._longest_wait_ms
            )
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = response.member_id
                continue
            check(response.error_code)
            self._member_id = response.member_id
            return response

    def _protocols(self) -> list[JoinGroupRequest.Protocols]:
        owned = tuple(sorted(self._owner.assigned()))
        generation_id = self._generation_id
        rows = []
        for name in self._config.partition_assignment_strategy:
            had, of_generation = self._former if name == "sticky" else (owned, generation_id)
            wanted = Subscription(self._joined_topics, had, of_generation)
            metadata = write_subscription(name, wanted, self._config.client_rack or None)
            rows.append(JoinGroupRequest.Protocols(name=name, metadata=metadata))
        return rows

    async def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequest.Assignments]:
        """As the leader of the group: the assignment of each member."""
        name = joined.protocol_name or ""
        members = {
            member.member_id: read_subscription(name, member.metadata, member.group_instance_id)
            for member in joined.members
        }
        topics = {topic for member in members.values() for topic in member.topics}
        self._brokers.metadata.want(topics)
        while not topics <= self._brokers.metadata.topics.keys() | self._brokers.metadata.errors.keys():
            self._brokers.metadata.mark_stale()
            await self._brokers.ensure_fresh()
        self._leads_with = self._counts(topics)
        counts = {topic: count for topic, count in self._leads_with.items() if count}
        if joined.skip_assignment:
            return []
        shared = ASSIGNORS[name](members, counts)
        return [
            SyncGroupRequest.Assignments(member_id=member_id, assignment=write_assignment(partitions))
            for member_id, partitions in shared.items()
        ]

    def _counts(self, topics: Collection[str]) -> dict[str, int]:
        """How many partitions topics have; one that does not exist has none."""
        known = self._brokers.metadata.topics
        return {topic: len(known[topic].partitions) if topic in known else 0 for topic in topics}

    async def _apply(self, assigned: frozenset[TopicPartition]) -> None:
        owned = self._owner.assigned()
        await self._with_heartbeats(self._owner.revoke(owned - assigned, is_lost=False))
        await self._with_heartbeats(self._owner.assign_more(assigned - owned))
        if self._config.is_cooperative and owned - assigned:
            self._must_rejoin.set()  # another member waits for what we revoked

    # Heartbeats.

    async def _with_heartbeats(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for the user's code, with heartbeats, until the deadline of the next poll."""
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait([task], timeout=self._config.heartbeat_interval_ms / 1000))[0]:
                if self._owner.poll_deadline_ms() <= time.monotonic() * 1000:
                    await self._leave_after_no_poll()
                    check(ErrorCode.REBALANCE_IN_PROGRESS)
                if self._generation_id != NO_GENERATION:
                    await self._beat_ignoring_errors()
        except BaseException:
            task.cancel()
            raise
        task.result()

    async def _beat_ignoring_errors(self) -> None:
        """A heartbeat whose errors are ignored: the next join reports them again."""
        try:
            await self._heartbeat()
        except (BrokerError, ClientError) as error:
            _log.debug("group %s: %s", self._group_id, error)

    async def _heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=self._group_id, generation_id=self._generation_id, member_id=self._member_id
        )
        if self._config.group_instance_id is not None:
            request.group_instance_id = self._config.group_instance_id
        connection = await self._offsets.connection()
        check((await connection.send_request(request, HeartbeatResponse)).error_code)

    async def _send_heartbeats(self) -> None:
        """Send heartbeats until there is a reason to join again."""
        while not self._has_reason_to_rejoin():
            await self._heartbeat()
            if self._owner.poll_deadline_ms() <= time.monotonic() * 1000:
                await self._leave_after_no_poll()
                return
            try:
                async with asyncio.timeout(self._config.heartbeat_interval_ms / 1000):
                    await self._must_rejoin.wait()
            except TimeoutError:
                continue

    def _has_reason_to_rejoin(self) -> bool:
        if self._must_rejoin.is_set() or self._owner.topics() != self._joined_topics:
            return True
        return self._leads_with is not None and self._counts(self._leads_with.keys()) != self._leads_with

    async def _leave_after_no_poll(self) -> None:
        """Leave after max.poll.interval.ms without a poll."""
        _log.warning(
            "group %s: no poll within max_poll_interval_ms=%d; leaving until the next one",
            self._group_id,
            self._config.max_poll_interval_ms,
        )
        await self.leave("no poll within max.poll.interval.ms")
        await self._reset_generation(also_id=True)

    async def leave(self, reason: str) -> None:
        """Leave the group; a static member does not, since it may come back."""
        if not self._member_id or self._config.group_instance_id is not None:
            return
        member_id, self._member_id = self._member_id, ""
        self._generation_id = NO_GENERATION
        try:
            connection = await self._offsets.connection()
            request = LeaveGroupRequest(group_id=self._group_id, member_id=member_id)
            if connection.versions.serves(ApiKey.LEAVE_GROUP, at_least=FIRST_LEAVE_WITH_MEMBERS):
                row = LeaveGroupRequest.Members(member_id=member_id, reason=reason)
                request = LeaveGroupRequest(group_id=self._group_id, members=[row])
            await connection.send_request(request, LeaveGroupResponse)
        except (BrokerError, ClientError) as error:
            _log.debug("group %s: leaving: %s", self._group_id, error)
