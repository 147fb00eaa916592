"""Applies the controller's requests: LeaderAndIsr, StopReplica, UpdateMetadata."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from odradek.broker.background.log_cleaning import LogCleaning
from odradek.broker.background.log_moves import LogMoves
from odradek.cluster.control_fence import ControlFence
from odradek.cluster.metadata import UPDATE_TYPE_FULL, MetadataImage
from odradek.common.clock import Clock
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition, uuid_to_text
from odradek.log.config import LogConfig
from odradek.log.errors import StorageError
from odradek.protocol.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from odradek.replication.partition import LeaderAndIsrState
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
    """Applies the controller's requests, unless their controller epoch is stale. Lives on the broker's loop.

    One request at a time, in order of arrival. What blocks runs in the pool, by `in_pool`, and is finished
    before the next request starts. `on_applied` is called after each request.
    """

    def __init__(
        self,
        fence: ControlFence,
        replicas: ReplicaManager,
        image: MetadataImage,
        config_of: Callable[[str], LogConfig],
        clock: Clock,
        in_pool: InPool,
        cleaning: LogCleaning,
        moves: LogMoves,
        on_applied: Callable[[], None],
    ) -> None:
        self._fence = fence
        self._replicas = replicas
        self._image = image
        self._config_of = config_of
        self._clock = clock
        self._in_pool = in_pool
        self._cleaning = cleaning
        self._moves = moves
        self._on_applied = on_applied
        self._turn = asyncio.Lock()
        # Partitions that a full disk could not take; retried when there is space.
        self.without_space: set[TopicPartition] = set()

    async def close(self) -> None:
        """Wait for the current request and accept no other: the logs are about to be closed."""
        await self._turn.acquire()

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Make this broker leader or follower of every partition in the request, concurrently."""
        async with self._turn:
            refused = self._fence.admit(request.controller_epoch, request.broker_epoch)
            if refused:
                return LeaderAndIsrResponse(error_code=refused)
            topics = []
            for topic in request.topic_states:
                rows = await asyncio.gather(*(self._host(topic, state) for state in topic.partition_states))
                topics.append(_LeaderTopic(topic_id=topic.topic_id, partition_errors=list(rows)))
            if request.type == UPDATE_TYPE_FULL:
                await self._set_aside_strays(request)
            self._on_applied()
            return LeaderAndIsrResponse(topics=topics)

    async def _host(
        self,
        topic: LeaderAndIsrRequest.TopicStates,
        told: LeaderAndIsrRequest.TopicStates.PartitionStates,
    ) -> _LeaderError:
        topic_partition = TopicPartition(topic.topic_name, told.partition_index)
        state = LeaderAndIsrState(
            told.leader, told.leader_epoch, tuple(told.isr), tuple(told.replicas), told.partition_epoch
        )
        row = _LeaderError(partition_index=told.partition_index)
        try:
            await self._set_aside_other_topic(topic_partition, topic.topic_id)
            hosting = self._replicas.begin_hosting(
                topic_partition,
                topic.topic_id,
                state,
                self._config_of(topic.topic_name),
                now_ms=self._clock.now_ms(),
            )
            if hosting.blocks:
                await self._run(hosting)
            self._replicas.complete_hosting(hosting)
            self.without_space.discard(topic_partition)
        except StorageError as error:
            row.error_code = error.error_code
            self._replicas.disk_failed(topic_partition, error)
            if error.is_no_space:
                self.without_space.add(topic_partition)
        except KafkaError as error:
            row.error_code = error.error_code
        return row

    async def _run(self, hosting: ReplicaSetup) -> None:
        try:
            await self._in_pool(hosting.run)
        except StorageError:
            self._replicas.cancel_hosting(hosting)
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

    async def _set_aside_strays(self, request: LeaderAndIsrRequest) -> None:
        """Rename the logs that a full request does not name: they are strays, kept but not served."""
        wanted = {
            TopicPartition(topic.topic_name, told.partition_index)
            for topic in request.topic_states
            for told in topic.partition_states
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
        async with self._turn:
            refused = self._fence.admit(request.controller_epoch, request.broker_epoch)
            if refused:
                return StopReplicaResponse(error_code=refused)
            stopping = (
                self._stop(TopicPartition(topic.topic_name, told.partition_index), told)
                for topic in request.topic_states
                for told in topic.partition_states
            )
            rows = await asyncio.gather(*stopping)
            self._on_applied()
            return StopReplicaResponse(partition_errors=list(rows))

    async def _stop(
        self, topic_partition: TopicPartition, told: StopReplicaRequest.TopicStates.PartitionStates
    ) -> _StopError:
        row = _StopError(topic_name=topic_partition.topic, partition_index=topic_partition.partition)
        partition = self._replicas.find(*topic_partition)
        if partition is not None and 0 <= told.leader_epoch < partition.state.leader_epoch:
            row.error_code = ErrorCode.FENCED_LEADER_EPOCH
            return row
        await self._moves.cancel(topic_partition)
        self._replicas.drop(topic_partition)
        if told.delete_partition:
            self.without_space.discard(topic_partition)
            home = self._replicas.logs.directory_of(topic_partition)
            try:
                await self._delete(topic_partition)
            except StorageError as error:
                row.error_code = error.error_code
                if home is not None:
                    self._replicas.directory_failed(home, error)
        return row

    async def _delete(self, topic_partition: TopicPartition) -> None:
        logs = self._replicas.logs
        log = logs.get(topic_partition)
        steps = [] if log is None else [self._cleaning.removed(log)]
        steps.append(logs.begin_deletion(topic_partition, now_ms=self._clock.now_ms()))
        for step in steps:
            await self._in_pool(step)

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Update the metadata that clients receive."""
        async with self._turn:
            refused = self._fence.admit(request.controller_epoch, request.broker_epoch)
            if refused:
                return UpdateMetadataResponse(error_code=refused)
            self._image.update(request)
            self._on_applied()
            return UpdateMetadataResponse()
