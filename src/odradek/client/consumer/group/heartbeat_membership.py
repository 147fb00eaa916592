"""A member of a group whose broker assigns (KIP-848): heartbeats do everything.

    join       epoch 0, all that we want        ->  a member epoch, and perhaps an assignment
    then       what changed                     ->  the assignment if it changed
    reconcile  revoke, assign, report           ->  in the next heartbeat
    leave      epoch -1 (a static member: -2)

Heartbeats continue while rebalance listeners are called.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from uuid import uuid4

from odradek.client.broker_errors import check
from odradek.client.committed_offsets import MemberIdentity
from odradek.client.consumer.config import ConsumerConfig
from odradek.client.consumer.first_contact import FirstContact
from odradek.client.consumer.group.group_offsets import GroupOffsets
from odradek.client.consumer.group.membership import GroupOwner
from odradek.client.errors import BrokerError, ClientError, is_retriable
from odradek.client.network.backoff import Backoff
from odradek.client.network.brokers import Brokers
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition, uuid_to_text
from odradek.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

JOINING = 0
LEAVING = -1
LEAVING_FOR_A_WHILE = -2
FIRST_HEARTBEAT_MS = 1000
"""Until the broker has sent its own interval."""

# The broker has revoked our partitions.
FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})

_log = logging.getLogger("odradek.consumer")


class HeartbeatMembership:
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
        self._member_id = uuid_to_text(uuid4())
        self._epoch = JOINING
        self._interval_ms = FIRST_HEARTBEAT_MS
        self._target: dict[bytes, list[int]] | None = None  # by topic id, as received
        self._contact = FirstContact(f"joining group {config.group_id}", config.default_api_timeout_ms)
        self._sent_subscription: tuple[frozenset[str], str | None] | None = None
        self._sent_owned: frozenset[TopicPartition] | None = None
        self._must_beat = asyncio.Event()
        self._reconciling: asyncio.Task[None] | None = None

    @property
    def identity(self) -> MemberIdentity:
        """The member in commit requests."""
        epoch = self._epoch if self._epoch > JOINING else -1
        member_id = self._member_id if self._epoch > JOINING else ""
        return MemberIdentity(member_id, epoch, self._config.group_instance_id)

    def rejoin(self) -> None:
        """Send a heartbeat at once: the subscription has changed."""
        self._must_beat.set()

    async def run(self) -> None:
        """Join, and stay a member."""
        failures = 0
        try:
            while True:
                try:
                    await self._heartbeat_once()
                    failures = 0
                    self._contact.succeeded()
                except (BrokerError, ClientError) as error:
                    self._offsets.forget_coordinator_after(error)
                    if isinstance(error, BrokerError) and error.error_code in FENCED:
                        await self._reset()
                        continue
                    if not is_retriable(error):
                        raise
                    _log.debug("group %s: %s", self._group_id, error)
                    failures += 1
                    timed_out = self._contact.failed(error, time.monotonic() * 1000)
                    if timed_out is not None:
                        self._owner.fail(timed_out)
                    await asyncio.sleep(self._backoff.pause_ms(failures, random.random()) / 1000)
        finally:
            self._stop_reconciling()

    async def _heartbeat_once(self) -> None:
        """One heartbeat, what follows from it, and the pause until the next."""
        while self._owner.poll_deadline_ms() <= time.monotonic() * 1000:
            if self._epoch > JOINING:
                _log.warning("group %s: no poll within max_poll_interval_ms; leaving", self._group_id)
                await self.leave("no poll within max.poll.interval.ms")
                await self._reset()
            await asyncio.sleep(0.05)
        self._must_beat.clear()
        await self._beat()
        self._reconcile_if_due()
        try:
            async with asyncio.timeout(self._interval_ms / 1000):
                await self._must_beat.wait()
        except TimeoutError:
            return

    async def _reset(self) -> None:
        self._stop_reconciling()
        self._epoch, self._target = JOINING, None
        self._sent_subscription = self._sent_owned = None
        await self._owner.revoke(self._owner.assigned(), is_lost=True)

    # Heartbeats.

    async def _beat(self) -> None:
        subscription = (self._owner.topics(), self._owner.topic_regex())
        owned = self._owner.assigned()
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=self._config.group_instance_id,
            rebalance_timeout_ms=-1,
            subscribed_topic_names=None,
            subscribed_topic_regex=None,
            server_assignor=None,
            topic_partitions=None,
        )
        if self._epoch == JOINING:
            request.rebalance_timeout_ms = self._config.max_poll_interval_ms
            request.server_assignor = self._config.group_remote_assignor
            request.rack_id = self._config.client_rack or None
        if subscription != self._sent_subscription or self._epoch == JOINING:
            request.subscribed_topic_names = sorted(subscription[0])
            if subscription[1] is not None or (
                self._sent_subscription is not None and self._sent_subscription[1] is not None
            ):
                request.subscribed_topic_regex = subscription[1] or ""
        # Owned partitions are reported after the listeners have been called.
        if self._epoch == JOINING or (self._reconciling is None and owned != self._sent_owned):
            request.topic_partitions = self._owned_by_id(owned) if self._epoch != JOINING else []
        connection = await self._offsets.connection()
        response = await connection.send_request(request, ConsumerGroupHeartbeatResponse)
        check(response.error_code, response.error_message)
        self._sent_subscription = subscription
        if request.topic_partitions is not None:
            self._sent_owned = owned
        self._member_id = response.member_id or self._member_id
        self._epoch = response.member_epoch
        self._interval_ms = response.heartbeat_interval_ms or self._interval_ms
        if response.assignment is not None:
            self._target = {row.topic_id: row.partitions for row in response.assignment.topic_partitions}

    def _owned_by_id(
        self, owned: frozenset[TopicPartition]
    ) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions]:
        rows: dict[bytes, list[int]] = {}
        for partition in sorted(owned):
            topic = self._brokers.metadata.topics.get(partition.topic)
            if topic is not None:
                rows.setdefault(topic.topic_id, []).append(partition.partition)
        return [
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in rows.items()
        ]

    # Reconciliation.

    def _reconcile_if_due(self) -> None:
        if self._target is None or self._reconciling is not None:
            return
        target, self._target = self._target, None
        self._reconciling = asyncio.create_task(self._reconcile(target))
        self._reconciling.add_done_callback(self._reconciled)

    async def _reconcile(self, target: dict[bytes, list[int]]) -> None:
        assigned = await self._named(target)
        owned = self._owner.assigned()
        await self._owner.revoke(owned - assigned, is_lost=False)
        await self._owner.assign_more(assigned - owned)

    def _reconciled(self, task: asyncio.Task[None]) -> None:
        if self._reconciling is task:
            self._reconciling = None
        if not task.cancelled() and task.exception() is not None:
            _log.warning("group %s: taking over an assignment", self._group_id, exc_info=task.exception())
        self._must_beat.set()

    async def _named(self, target: dict[bytes, list[int]]) -> frozenset[TopicPartition]:
        """The assignment with names, which may have to be requested; deleted topics are left out."""
        names = self._brokers.metadata.names
        if not target.keys() <= names.keys():
            self._brokers.metadata.mark_stale()
            await self._brokers.ensure_fresh()
        return frozenset(
            TopicPartition(names[topic_id], number)
            for topic_id, numbers in target.items()
            if topic_id in names
            for number in numbers
        )

    def _stop_reconciling(self) -> None:
        if self._reconciling is not None:
            self._reconciling.cancel()
            self._reconciling = None

    async def leave(self, reason: str) -> None:
        """Leave the group; a static member leaves temporarily."""
        if self._epoch <= JOINING:
            return
        is_static = self._config.group_instance_id is not None
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            member_epoch=LEAVING_FOR_A_WHILE if is_static else LEAVING,
            instance_id=self._config.group_instance_id,
            rebalance_timeout_ms=-1,
            subscribed_topic_names=None,
            topic_partitions=None,
        )
        self._epoch = JOINING
        _log.debug("group %s: leaving: %s", self._group_id, reason)
        try:
            connection = await self._offsets.connection()
            await connection.send_request(request, ConsumerGroupHeartbeatResponse)
        except (BrokerError, ClientError) as error:
            _log.debug("group %s: leaving: %s", self._group_id, error)
