"""The image of the cluster that every broker answers clients from, kept by UpdateMetadata requests.

A partition whose leader is -2 is removed: its topic is being deleted. A request of type FULL has everything:
topics that are not in it are removed as well, in case the broker missed a deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.cluster.membership.brokers import UNKNOWN_BROKER_EPOCH, Broker, Endpoint, SecurityProtocol
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import ZERO_UUID, TopicPartition
from odradek.protocol.messages import UpdateMetadataRequest

NO_LEADER = -1
LEADER_DURING_DELETE = -2
NO_CONTROLLER = -1
NO_TOPIC_ID = ZERO_UUID.bytes

UPDATE_TYPE_INCREMENTAL = 1
UPDATE_TYPE_FULL = 2


class PartitionMetadata(NamedTuple):
    """The metadata of one partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    partition_epoch: int = -1
    controller_epoch: int = -1
    # UpdateMetadata has no fields for these two (KIP-966); the broker may fill them from the store.
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


class TopicMetadata(NamedTuple):
    """One topic; replaced, never changed, so that a reader may keep it while it awaits."""

    name: str
    topic_id: bytes
    partitions: dict[int, PartitionMetadata]


class ImageChange(NamedTuple):
    """The effect of one update."""

    changed: frozenset[str]
    deleted: frozenset[TopicPartition]


@dataclass(slots=True, eq=False, repr=False)
class MetadataImage:
    """Brokers, controller and topics as last sent by the controller.

    Owned by the event loop of its broker: `update` is called by the UpdateMetadata handler alone, all others
    only read. `listeners` are called after each update.
    """

    cluster_id: str
    controller_id: int = NO_CONTROLLER
    brokers: dict[int, Broker] = field(default_factory=dict)
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    names_by_id: dict[bytes, str] = field(default_factory=dict)
    # Counts updates; caches derived from the image compare it.
    version: int = 0
    listeners: list[Callable[[ImageChange], None]] = field(default_factory=list)
    _broker_epochs: dict[int, int] = field(default_factory=dict)

    def partition(self, name: str, index: int) -> PartitionMetadata | None:
        """One partition, if it is known."""
        topic = self.topics.get(name)
        return None if topic is None else topic.partitions.get(index)

    def topic_by_id(self, topic_id: bytes) -> TopicMetadata | None:
        """The topic with that id, if it is known."""
        name = self.names_by_id.get(topic_id)
        return None if name is None else self.topics.get(name)

    def is_alive(self, broker_id: int, listener: str) -> bool:
        """Whether clients of this listener can reach that broker."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.endpoint(listener) is not None

    def set_broker_epochs(self, epochs: dict[int, int]) -> None:
        """Set the epochs from the registrations; UpdateMetadata does not have them."""
        self._broker_epochs = dict(epochs)
        self.brokers = {id_: self._with_epoch(broker) for id_, broker in self.brokers.items()}

    def update(self, request: UpdateMetadataRequest) -> ImageChange:
        """Apply the controller's request; the caller has checked who sent it, and in which epoch.

        Raises KafkaError if the request names an unknown security protocol; nothing is changed then.
        """
        self.brokers = {one.id: self._with_epoch(_broker(one)) for one in request.live_brokers}
        self.controller_id = request.controller_id
        topics = {topic.topic_name: topic for topic in request.topic_states}
        deleted: set[TopicPartition] = set()
        if request.type == UPDATE_TYPE_FULL:
            for name in self.topics.keys() - topics.keys():
                deleted.update(self._remove(name))
        for topic in topics.values():
            deleted.update(self._merge(topic))
        self.version += 1
        change = ImageChange(frozenset(topics), frozenset(deleted))
        for listener in self.listeners:
            listener(change)
        return change

    def _merge(self, topic: UpdateMetadataRequest.TopicStates) -> Iterable[TopicPartition]:
        """Merge one topic; returns the removed partitions."""
        known = self.topics.get(topic.topic_name)
        deleted: list[TopicPartition] = []
        if known is not None and _is_another(known.topic_id, topic.topic_id):
            deleted.extend(self._remove(topic.topic_name))
            known = None
        partitions = dict(known.partitions) if known is not None else {}
        for state in topic.partition_states:
            if state.leader != LEADER_DURING_DELETE:
                partitions[state.partition_index] = _partition(state)
            elif partitions.pop(state.partition_index, None) is not None:
                deleted.append(TopicPartition(topic.topic_name, state.partition_index))
        if partitions:
            topic_id = topic.topic_id if topic.topic_id != NO_TOPIC_ID or known is None else known.topic_id
            self.topics[topic.topic_name] = TopicMetadata(topic.topic_name, topic_id, partitions)
            if topic_id != NO_TOPIC_ID:
                self.names_by_id[topic_id] = topic.topic_name
        else:
            self._remove(topic.topic_name)
        return deleted

    def _remove(self, name: str) -> Iterable[TopicPartition]:
        topic = self.topics.pop(name, None)
        if topic is None:
            return []
        self.names_by_id.pop(topic.topic_id, None)
        return [TopicPartition(name, index) for index in topic.partitions]

    def _with_epoch(self, broker: Broker) -> Broker:
        return broker._replace(epoch=self._broker_epochs.get(broker.broker_id, UNKNOWN_BROKER_EPOCH))


def _is_another(known_id: bytes, new_id: bytes) -> bool:
    """Whether a topic was deleted and created again with the same name; a missing id proves nothing."""
    return NO_TOPIC_ID not in (known_id, new_id) and known_id != new_id


def _broker(row: UpdateMetadataRequest.LiveBrokers) -> Broker:
    endpoints = (
        Endpoint(one.listener, one.host, one.port, _security_protocol(one.security_protocol))
        for one in row.endpoints
    )
    return Broker(row.id, tuple(endpoints), row.rack)


def _security_protocol(number: int) -> SecurityProtocol:
    try:
        return SecurityProtocol(number)
    except ValueError:
        raise KafkaError(
            f"there is no security protocol {number}", error_code=ErrorCode.INVALID_REQUEST
        ) from None


def _partition(state: UpdateMetadataRequest.TopicStates.PartitionStates) -> PartitionMetadata:
    return PartitionMetadata(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=tuple(state.isr),
        replicas=tuple(state.replicas),
        offline_replicas=tuple(state.offline_replicas),
        partition_epoch=state.zk_version,
        controller_epoch=state.controller_epoch,
    )
