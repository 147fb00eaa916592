"""Applies the controller's requests: LeaderAndIsr, StopReplica, UpdateMetadata."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from odradek.broker.background.log_cleaning import LogCleaning
from odradek.broker.background.log_moves import LogMoves
from odradek.broker.settings.dynamic.topic_settings import TopicSettings
from odradek.cluster.control_fence import ControlFence
from odradek.cluster.controller.events import ControlResponse
from odradek.cluster.controller.requests import ControlRequest
from odradek.cluster.metadata import UPDATE_TYPE_FULL, MetadataImage
from odradek.common.clock import Clock
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition, topic_name_problem, uuid_to_text
from odradek.common.repeated_warnings import RepeatedWarnings
from odradek.coordination.errors import StoreUnavailable
from odradek.coordination.store import Store
from odradek.log.errors import StorageError
from odradek.protocol.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from odradek.replication.partition import NO_LEADER, LeaderAndIsrState
from odradek.replication.replica_manager import ReplicaManager, ReplicaSetup

logger = logging.getLogger(__name__)

STRAYS = (
    "The store does not assign these partitions to broker %d: they are kept as strays and not served: %s. "
    "If this is the wrong store (odradek.coordination), stop the broker, rename the directories back to "
    "TOPIC-PARTITION and start it on the right one. `odradek log dump DIRECTORY` shows their records. Remove "
    "those that are not needed."
)

Step = Callable[[], Any]
InPool = Callable[[Step], Awaitable[Any]]

_LeaderTopic = LeaderAndIsrResponse.Topics
_LeaderError = LeaderAndIsrResponse.Topics.PartitionErrors
_StopError = StopReplicaResponse.PartitionErrors


class ControlRequestHandler:
    """Applies the requests of the present controller, and of no former one. Lives on the broker's loop.

    One LeaderAndIsr or StopReplica at a time, in order of arrival. What blocks runs in the pool, by
    `in_pool`, and is finished before the next request starts. UpdateMetadata does not wait for them.
    `on_applied` is called after each request.
    """

    def __init__(
        self,
        fence: ControlFence,
        replicas: ReplicaManager,
        image: MetadataImage,
        settings: TopicSettings,
        store: Callable[[], Store],
        clock: Clock,
        in_pool: InPool,
        cleaning: LogCleaning,
        moves: LogMoves,
        on_applied: Callable[[], None],
    ) -> None:
        self._fence = fence
        self._replicas = replicas
        self._image = image
        self._settings = settings
        self._store = store
        self._clock = clock
        self._in_pool = in_pool
        self._cleaning = cleaning
        self._moves = moves
        self._on_applied = on_applied
        self._lock = asyncio.Lock()
        self._warnings = RepeatedWarnings()
        # Whether a LeaderAndIsr request was applied.
        self.has_replicas_assigned = False
        # Partitions that a full disk could not take; retried when there is space.
        self.without_space: set[TopicPartition] = set()

    def knows_the_cluster(self) -> bool:
        """Whether the controller has sent the metadata, with this broker, and the replicas to serve."""
        broker_id = self._replicas.broker_id
        if broker_id not in self._image.brokers:
            return False
        # The controller of Kafka sends no LeaderAndIsr request to a broker without replicas.
        return self.has_replicas_assigned or not any(
            broker_id in partition.replicas
            for topic in self._image.topics.values()
            for partition in topic.partitions.values()
        )

    async def close(self) -> None:
        """Wait for the current request and accept no other: the logs are about to be closed."""
        await self._lock.acquire()

    async def apply(self, request: ControlRequest) -> ControlResponse:
        """Apply a request of any kind."""
        if isinstance(request, UpdateMetadataRequest):
            return self.update_metadata(request)
        if isinstance(request, LeaderAndIsrRequest):
            return await self.leader_and_isr(request)
        return await self.stop_replica(request)

    def _refuse(self, request: ControlRequest) -> ErrorCode:
        """The error for a request that is not of the present controller, or not for this registration."""
        refusal = self._fence.admit(request.controller_id, request.controller_epoch, request.broker_epoch)
        if refusal is None:
            return ErrorCode.NONE
        key = (request.controller_id, refusal.error_code)
        # The controller may hear of a broker's registration before the broker does.
        if self._fence.is_registered and self._warnings.is_due(key, self._clock.now_ms()):
            logger.warning(
                "%s from controller %d is refused: %s",
                type(request).__name__,
                request.controller_id,
                refusal.reason,
            )
        return refusal.error_code

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Make this broker leader or follower of every partition in the request, concurrently."""
        async with self._lock:
            refused = self._refuse(request)
            if refused:
                return LeaderAndIsrResponse(error_code=refused)
            try:
                await self._load_settings(request)
            except StoreUnavailable as error:
                logger.warning("The settings of new topics cannot be read yet: %s", error)
                return LeaderAndIsrResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
            topics = await asyncio.gather(*(self._host_topic(topic) for topic in request.topic_states))
            if request.type == UPDATE_TYPE_FULL:
                await self._set_aside_strays(request)
            self.has_replicas_assigned = True
            self._on_applied()
            return LeaderAndIsrResponse(topics=topics)

    async def _load_settings(self, request: LeaderAndIsrRequest) -> None:
        """Read the settings of topics that are new to this broker; skip impossible names."""
        names = (one.topic_name for one in request.topic_states)
        unknown = [
            name for name in names if topic_name_problem(name) is None and not self._settings.knows(name)
        ]
        await asyncio.gather(*(self._settings.load(self._store(), name) for name in unknown))

    async def _host_topic(self, topic: LeaderAndIsrRequest.TopicStates) -> _LeaderTopic:
        rows = await asyncio.gather(*(self._host(topic, state) for state in topic.partition_states))
        return _LeaderTopic(topic_id=topic.topic_id, partition_errors=list(rows))

    async def _host(
        self,
        topic: LeaderAndIsrRequest.TopicStates,
        requested: LeaderAndIsrRequest.TopicStates.PartitionStates,
    ) -> _LeaderError:
        topic_partition = TopicPartition(topic.topic_name, requested.partition_index)
        state = LeaderAndIsrState(
            requested.leader,
            requested.leader_epoch,
            tuple(requested.isr),
            tuple(requested.replicas),
            requested.partition_epoch,
        )
        row = _LeaderError(partition_index=requested.partition_index)
        try:
            await self._set_aside_other_topic(topic_partition, topic.topic_id)
            await self._quarantine(topic_partition, requested.leader)
            setup = self._replicas.begin_setup(
                topic_partition,
                topic.topic_id,
                state,
                self._settings.log_config(topic.topic_name),
                now_ms=self._clock.now_ms(),
                is_new=requested.is_new,
            )
            if setup.blocks:
                await self._run(setup)
            partition = self._replicas.complete_setup(setup)
            if setup.creation is not None:
                # They may have changed while it was created.
                partition.log.config = self._settings.log_config(topic.topic_name)
            self.without_space.discard(topic_partition)
        except StorageError as error:
            row.error_code = error.error_code
            self._replicas.disk_failed(topic_partition, error)
            if error.is_no_space:
                self.without_space.add(topic_partition)
        except KafkaError as error:
            row.error_code = error.error_code
        return row

    async def _run(self, setup: ReplicaSetup) -> None:
        try:
            await self._in_pool(setup.run)
        except BaseException:
            self._replicas.cancel_setup(setup)
            raise

    async def _set_aside_other_topic(self, topic_partition: TopicPartition, topic_id: bytes) -> None:
        log = self._replicas.log_of_other_topic(topic_partition, topic_id)
        if log is None or log.topic_id is None:
            return
        await self._moves.cancel(topic_partition)
        self._replicas.drop(topic_partition)
        rename = self._replicas.logs.begin_setting_aside(topic_partition)
        await self._in_pool(self._cleaning.removed(log))
        logger.warning(
            "The log of %s belongs to a deleted topic of the same name (id %s, now %s): it is kept as %s and "
            "not served. Remove that directory when its records are not needed.",
            topic_partition,
            uuid_to_text(log.topic_id),
            uuid_to_text(UUID(bytes=topic_id)),
            await self._in_pool(rename),
        )

    async def _quarantine(self, topic_partition: TopicPartition, leader: int) -> None:
        """Give up a log whose committed records are damaged, if its leader has them: it is copied anew."""
        logs = self._replicas.logs
        damage = logs.report.corrupted.get(topic_partition)
        if damage is None or leader in (NO_LEADER, self._replicas.broker_id):
            return
        path = await self._in_pool(logs.begin_quarantine(topic_partition))
        logger.warning(
            "%s is copied anew from broker %d, because its log was damaged (%s). The damaged log is kept as "
            "%s; remove that directory when it is not needed.",
            topic_partition,
            leader,
            damage,
            path,
        )

    async def _set_aside_strays(self, request: LeaderAndIsrRequest) -> None:
        """Rename the logs that a full request does not name: they are strays, kept but not served."""
        wanted = {
            TopicPartition(topic.topic_name, requested.partition_index)
            for topic in request.topic_states
            for requested in topic.partition_states
        }
        self.without_space &= wanted
        for topic_partition in [known for known in self._replicas.logs.moves if known not in wanted]:
            await self._moves.cancel(topic_partition)
        strays = self._replicas.set_aside_all_but(wanted)
        steps = [self._cleaning.removed(log) for log in strays.values()]
        if strays:
            logger.warning(STRAYS, self._replicas.broker_id, ", ".join(strays))
        for step in steps:
            await self._in_pool(step)

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop the replicas in the request, and delete their logs where it says so."""
        async with self._lock:
            refused = self._refuse(request)
            if refused:
                return StopReplicaResponse(error_code=refused)
            for topic in request.topic_states:
                # A topic created again under the same name has settings of its own.
                if any(state.delete_partition for state in topic.partition_states):
                    self._settings.forget(topic.topic_name)
            stopping = (
                self._stop(TopicPartition(topic.topic_name, requested.partition_index), requested)
                for topic in request.topic_states
                for requested in topic.partition_states
            )
            rows = await asyncio.gather(*stopping)
            self._on_applied()
            return StopReplicaResponse(partition_errors=list(rows))

    async def _stop(
        self, topic_partition: TopicPartition, requested: StopReplicaRequest.TopicStates.PartitionStates
    ) -> _StopError:
        row = _StopError(topic_name=topic_partition.topic, partition_index=topic_partition.partition)
        partition = self._replicas.find(*topic_partition)
        if partition is not None and 0 <= requested.leader_epoch < partition.state.leader_epoch:
            row.error_code = ErrorCode.FENCED_LEADER_EPOCH
            return row
        await self._moves.cancel(topic_partition)
        self._replicas.drop(topic_partition)
        if requested.delete_partition:
            self.without_space.discard(topic_partition)
            directory = self._replicas.logs.directory_of(topic_partition)
            try:
                await self._delete(topic_partition)
            except StorageError as error:
                row.error_code = error.error_code
                if directory is not None:
                    self._replicas.directory_failed(directory, error)
        return row

    async def _delete(self, topic_partition: TopicPartition) -> None:
        logs = self._replicas.logs
        log = logs.get(topic_partition)
        steps = [] if log is None else [self._cleaning.removed(log)]
        steps.append(logs.begin_deletion(topic_partition, now_ms=self._clock.now_ms()))
        for step in steps:
            await self._in_pool(step)

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Update the metadata that clients receive."""
        refused = self._refuse(request)
        if refused:
            return UpdateMetadataResponse(error_code=refused)
        change = self._image.update(request)
        if change.deleted:
            hosted = {partition.topic_partition.topic for partition in self._replicas}
            for topic in {one.topic for one in change.deleted} - hosted - self._image.topics.keys():
                self._settings.forget(topic)
        self._on_applied()
        return UpdateMetadataResponse()
