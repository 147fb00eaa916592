"""What this broker does when the controller speaks: LeaderAndIsr, StopReplica, UpdateMetadata."""

from __future__ import annotations

from collections.abc import Callable

from odradek.cluster.control_fence import ControlFence
from odradek.cluster.metadata import UPDATE_TYPE_FULL, MetadataImage
from odradek.common.clock import Clock
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.protocol.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from odradek.replication.partition import PartitionState
from odradek.replication.replica_manager import ReplicaManager

_LeaderTopic = LeaderAndIsrResponse.Topics
_LeaderError = LeaderAndIsrResponse.Topics.PartitionErrors
_StopError = StopReplicaResponse.PartitionErrors


class Obedience:
    """Carries out the controller's requests, unless a deposed one sent them. Lives on the broker's loop."""

    def __init__(
        self,
        fence: ControlFence,
        replicas: ReplicaManager,
        image: MetadataImage,
        config_of: Callable[[str], LogConfig],
        clock: Clock,
    ) -> None:
        self._fence = fence
        self._replicas = replicas
        self._image = image
        self._config_of = config_of
        self._clock = clock

    def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Host every partition named, as its leader or a follower; may block while directories are made."""
        refused = self._fence.admit(request.controller_epoch, request.broker_epoch)
        if refused:
            return LeaderAndIsrResponse(error_code=refused)
        topics = []
        for topic in request.topic_states:
            rows = [self._host(topic, state) for state in topic.partition_states]
            topics.append(_LeaderTopic(topic_id=topic.topic_id, partition_errors=rows))
        if request.type == UPDATE_TYPE_FULL:
            self._replicas.set_aside_all_but(
                {
                    TopicPartition(topic.topic_name, told.partition_index)
                    for topic in request.topic_states
                    for told in topic.partition_states
                }
            )
        return LeaderAndIsrResponse(topics=topics)

    def _host(
        self,
        topic: LeaderAndIsrRequest.TopicStates,
        told: LeaderAndIsrRequest.TopicStates.PartitionStates,
    ) -> _LeaderError:
        state = PartitionState(
            told.leader, told.leader_epoch, tuple(told.isr), tuple(told.replicas), told.partition_epoch
        )
        row = _LeaderError(partition_index=told.partition_index)
        try:
            self._replicas.host(
                TopicPartition(topic.topic_name, told.partition_index),
                topic.topic_id,
                state,
                self._config_of(topic.topic_name),
                now_ms=self._clock.now_ms(),
            )
        except KafkaError as error:
            row.error_code = error.error_code
        return row

    def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Give up the partitions named, and their files where told so."""
        refused = self._fence.admit(request.controller_epoch, request.broker_epoch)
        if refused:
            return StopReplicaResponse(error_code=refused)
        rows = [
            self._stop(TopicPartition(topic.topic_name, told.partition_index), told)
            for topic in request.topic_states
            for told in topic.partition_states
        ]
        return StopReplicaResponse(partition_errors=rows)

    def _stop(
        self, topic_partition: TopicPartition, told: StopReplicaRequest.TopicStates.PartitionStates
    ) -> _StopError:
        row = _StopError(topic_name=topic_partition.topic, partition_index=topic_partition.partition)
        partition = self._replicas.find(*topic_partition)
        if partition is not None and 0 <= told.leader_epoch < partition.state.leader_epoch:
            row.error_code = ErrorCode.FENCED_LEADER_EPOCH
            return row
        try:
            self._replicas.drop(
                topic_partition, delete_log=told.delete_partition, now_ms=self._clock.now_ms()
            )
        except KafkaError as error:
            row.error_code = error.error_code
        return row

    def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Take over what clients are to be told."""
        refused = self._fence.admit(request.controller_epoch, request.broker_epoch)
        if refused:
            return UpdateMetadataResponse(error_code=refused)
        self._image.update(request)
        return UpdateMetadataResponse()
