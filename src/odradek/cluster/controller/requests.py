"""Collects the effects of one event into one request of each type per broker.

Requests have the state of the context at `drain`: a partition that changed twice is sent once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from odradek.cluster.controller.state.context import (
    INITIAL_LEADER_EPOCH,
    NO_PARTITION_EPOCH,
    ControllerContext,
    LeaderAndIsr,
    PartitionReplica,
    ReplicaState,
)
from odradek.cluster.membership.brokers import Broker
from odradek.cluster.metadata import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    UPDATE_TYPE_FULL,
    UPDATE_TYPE_INCREMENTAL,
)
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest

# A StopReplica without a leader epoch to compare, and one of a deletion: later than every epoch.
NO_EPOCH = -1
EPOCH_DURING_DELETE = -2

ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest

_TopicStates = LeaderAndIsrRequest.TopicStates
_LeaderState = LeaderAndIsrRequest.TopicStates.PartitionStates
_MetadataTopic = UpdateMetadataRequest.TopicStates
_MetadataState = UpdateMetadataRequest.TopicStates.PartitionStates
_StopTopic = StopReplicaRequest.TopicStates
_StopState = StopReplicaRequest.TopicStates.PartitionStates

ASKED_TO_DELETE = frozenset(
    {ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL, ReplicaState.NON_EXISTENT}
)

# Older than every state: a broker that has one keeps it, and no broker takes the replica for a stray.
_UNREADABLE = LeaderAndIsr(NO_LEADER, NO_EPOCH, (), NO_EPOCH)


@dataclass(slots=True, eq=False, repr=False)
class RequestBatch:
    """Pending changes by broker. Owned by the controller's event loop; emptied by `drain`."""

    controller_id: int
    inter_broker_listener: str
    # The value: whether the partition is new on that broker.
    _leaders: dict[int, dict[TopicPartition, bool]] = field(default_factory=dict)
    # The value: whether the replica is to be deleted.
    _stops: dict[int, dict[TopicPartition, bool]] = field(default_factory=dict)
    _metadata: dict[int, set[TopicPartition]] = field(default_factory=dict)
    _everything: set[int] = field(default_factory=set)

    def add_full_state(self, broker_ids: Iterable[int]) -> None:
        """Send the full state to these brokers; they may remove everything else.

        While topics are damaged the request is incremental, because their partitions cannot be named in it.
        """
        self._everything.update(broker_ids)

    def add_leader_and_isr(
        self, broker_ids: Iterable[int], partition: TopicPartition, *, is_new: bool = False
    ) -> None:
        """Send the leader and ISR of a partition to brokers that have a replica of it."""
        for broker_id in broker_ids:
            known = self._leaders.setdefault(broker_id, {})
            known[partition] = is_new or known.get(partition, False)

    def stop_replica(self, broker_id: int, partition: TopicPartition, *, delete: bool) -> None:
        """Stop fetching or serving a partition; with `delete`, remove its files."""
        stops = self._stops.setdefault(broker_id, {})
        stops[partition] = delete or stops.get(partition, False)

    def add_update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition] = ()
    ) -> None:
        """Send the state of these partitions, and all live brokers, which are always included."""
        changed = list(partitions)
        for broker_id in broker_ids:
            self._metadata.setdefault(broker_id, set()).update(changed)

    def drain(self, context: ControllerContext) -> list[tuple[int, ControlRequest]]:
        """The requests in the order in which each broker must get them; empties the batch."""
        requests: list[tuple[int, ControlRequest]] = []
        live_brokers = [_live_broker(broker) for broker in context.brokers.values()]
        for broker_id in sorted(context.brokers):
            # A broker that gets the full state sets unnamed partitions aside, and would never delete them.
            stops_first = broker_id in self._everything and broker_id in self._stops
            if stops_first:
                requests.append((broker_id, self._stop_request(context, broker_id)))
            if broker_id in self._leaders or broker_id in self._everything:
                requests.append((broker_id, self._leader_request(context, broker_id)))
            if broker_id in self._metadata or broker_id in self._everything:
                requests.append((broker_id, self._metadata_request(context, broker_id, live_brokers)))
            if broker_id in self._stops and not stops_first:
                requests.append((broker_id, self._stop_request(context, broker_id)))
        self.clear()
        return requests

    def clear(self) -> None:
        """Drop all changes: the controller has resigned."""
        for gathered in (self._leaders, self._stops, self._metadata, self._everything):
            gathered.clear()

    def _leader_request(self, context: ControllerContext, broker_id: int) -> LeaderAndIsrRequest:
        is_full = broker_id in self._everything
        partitions = dict(self._leaders.get(broker_id, {}))
        if is_full:
            for partition, _ in context.replicas_on([broker_id]):
                partitions.setdefault(partition, False)
        topics: dict[str, _TopicStates] = {}
        leaders: set[int] = set()
        for partition, is_new in sorted(partitions.items()):
            state = context.leadership.get(partition)
            if state is None and partition in context.unreadable:
                state = _UNREADABLE
            if state is not None and context.is_queued_for_deletion(partition.topic):
                is_kept = is_full and _is_kept(context, PartitionReplica(partition, broker_id))
                state = state._replace(leader=NO_LEADER) if is_kept else None
            if state is None:
                continue
            leaders.add(state.leader)
            topic = topics.get(partition.topic)
            if topic is None:
                topic_id = context.topic_id(partition.topic)
                topic = topics[partition.topic] = _TopicStates(topic_name=partition.topic, topic_id=topic_id)
            topic.partition_states.append(_leader_state(context, partition, state, is_new=is_new))
        return LeaderAndIsrRequest(
            controller_id=self.controller_id,
            controller_epoch=context.epoch,
            broker_epoch=context.broker_epoch(broker_id),
            type=_update_type(is_full and not context.damaged_topics),
            topic_states=list(topics.values()),
            live_leaders=self._live_leaders(context, leaders),
        )

    def _live_leaders(
        self, context: ControllerContext, leaders: Iterable[int]
    ) -> list[LeaderAndIsrRequest.LiveLeaders]:
        live_leaders = []
        for broker_id in sorted(leaders):
            broker = context.brokers.get(broker_id)
            endpoint = broker.endpoint(self.inter_broker_listener) if broker is not None else None
            if endpoint is not None:
                live_leaders.append(
                    LeaderAndIsrRequest.LiveLeaders(
                        broker_id=broker_id, host_name=endpoint.host, port=endpoint.port
                    )
                )
        return live_leaders

    def _metadata_request(
        self,
        context: ControllerContext,
        broker_id: int,
        live_brokers: list[UpdateMetadataRequest.LiveBrokers],
    ) -> UpdateMetadataRequest:
        is_full = broker_id in self._everything
        partitions = set(self._metadata.get(broker_id, ()))
        if is_full:
            partitions.update(context.leadership)
        topics: dict[str, _MetadataTopic] = {}
        for partition in sorted(partitions):
            state = _metadata_state(context, partition)
            if state is None:
                continue
            topic = topics.get(partition.topic)
            if topic is None:
                topic_id = context.topic_id(partition.topic)
                topic = _MetadataTopic(topic_name=partition.topic, topic_id=topic_id)
                topics[partition.topic] = topic
            topic.partition_states.append(state)
        return UpdateMetadataRequest(
            controller_id=self.controller_id,
            type=_update_type(is_full and not (context.damaged_topics or context.unreadable)),
            controller_epoch=context.epoch,
            broker_epoch=context.broker_epoch(broker_id),
            topic_states=list(topics.values()),
            live_brokers=live_brokers,
        )

    def _stop_request(self, context: ControllerContext, broker_id: int) -> StopReplicaRequest:
        topics: dict[str, _StopTopic] = {}
        for partition, delete in sorted(self._stops[broker_id].items()):
            topic = topics.setdefault(partition.topic, _StopTopic(topic_name=partition.topic))
            topic.partition_states.append(
                _StopState(
                    partition_index=partition.partition,
                    leader_epoch=_stop_epoch(context, partition),
                    delete_partition=delete,
                )
            )
        return StopReplicaRequest(
            controller_id=self.controller_id,
            controller_epoch=context.epoch,
            broker_epoch=context.broker_epoch(broker_id),
            topic_states=sorted(topics.values(), key=attrgetter("topic_name")),
        )


def _is_kept(context: ControllerContext, replica: PartitionReplica) -> bool:
    """Whether a broker was not yet asked to delete its replica of a topic in deletion."""
    return context.replica_state(replica) not in ASKED_TO_DELETE


def _update_type(is_full: bool) -> int:
    return UPDATE_TYPE_FULL if is_full else UPDATE_TYPE_INCREMENTAL


def _leader_state(
    context: ControllerContext, partition: TopicPartition, state: LeaderAndIsr, *, is_new: bool
) -> _LeaderState:
    assignment = context.assignment(partition)
    return _LeaderState(
        partition_index=partition.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        partition_epoch=state.partition_epoch,
        replicas=list(assignment.replicas),
        adding_replicas=list(assignment.adding),
        removing_replicas=list(assignment.removing),
        is_new=is_new,
        leader_recovery_state=state.recovery_state,
    )


def _metadata_state(context: ControllerContext, partition: TopicPartition) -> _MetadataState | None:
    """The state of a partition; a deletion is marked by its leader id, even without a leader before."""
    is_deleted = context.is_queued_for_deletion(partition.topic)
    state = context.leadership.get(partition)
    if state is None and is_deleted:
        state = LeaderAndIsr(
            LEADER_DURING_DELETE, INITIAL_LEADER_EPOCH, (), context.epoch, partition_epoch=NO_PARTITION_EPOCH
        )
    if state is None:
        return None
    replicas = context.assignment(partition).replicas
    offline = [id_ for id_ in replicas if not context.is_replica_online(id_, partition)]
    return _MetadataState(
        partition_index=partition.partition,
        controller_epoch=state.controller_epoch,
        leader=LEADER_DURING_DELETE if is_deleted else state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        zk_version=state.partition_epoch,
        replicas=list(replicas),
        offline_replicas=offline,
    )


def _stop_epoch(context: ControllerContext, partition: TopicPartition) -> int:
    if context.is_queued_for_deletion(partition.topic):
        return EPOCH_DURING_DELETE
    state = context.leadership.get(partition)
    return NO_EPOCH if state is None else state.leader_epoch


def _live_broker(broker: Broker) -> UpdateMetadataRequest.LiveBrokers:
    return UpdateMetadataRequest.LiveBrokers(
        id=broker.broker_id,
        rack=broker.rack,
        endpoints=[
            UpdateMetadataRequest.LiveBrokers.Endpoints(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener,
                security_protocol=endpoint.security_protocol,
            )
            for endpoint in broker.endpoints
        ],
    )
