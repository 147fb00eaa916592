"""Responses from the metadata image: Metadata, DescribeCluster and DescribeTopicPartitions.

The handlers do authorization and automatic creation; they pass the authorized names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from odradek.cluster.metadata import NO_LEADER, MetadataImage, PartitionMetadata, TopicMetadata
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import topic_name_problem
from odradek.protocol import messages
from odradek.protocol.messages import MetadataResponse

if TYPE_CHECKING:
    from odradek.protocol.messages import DescribeClusterResponse, DescribeTopicPartitionsResponse

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

# From this version on there is an own error for a leader without the client's listener.
_FIRST_WITH_LISTENER_NOT_FOUND = 6
# Only this version reports offline replicas by an error; later ones have offline_replicas.
_VERSION_WITH_REPLICA_ERRORS = 0

MAX_TOPICS_DESCRIBED = 10_000

TopicAnswer = MetadataResponse.Topics
PartitionAnswer = MetadataResponse.Topics.Partitions


class Cursor(NamedTuple):
    """Where the next page of a description begins."""

    topic_name: str
    partition_index: int


@dataclass(slots=True, eq=False, repr=False)
class MetadataAnswers:
    """Answers for the clients of one listener; topics are kept until the image changes.

    Owned by the broker's event loop. The structs returned are shared: callers must not change them.
    """

    image: MetadataImage
    listener: str
    _cached: dict[tuple[str, int], TopicAnswer] = field(default_factory=dict)
    _cached_version: int = -1

    def brokers(self) -> list[MetadataResponse.Brokers]:
        """Every live broker that serves this listener."""
        return [
            MetadataResponse.Brokers(node_id=id_, host=host, port=port, rack=rack)
            for id_, host, port, rack in self._reachable()
        ]

    def topic(self, name: str, version: int) -> TopicAnswer:
        """One topic by name; an error inside when there is none."""
        topic = self.image.topics.get(name)
        if topic is None:
            return TopicAnswer(
                error_code=unknown_topic_error(name), name=name, is_internal=name in INTERNAL_TOPICS
            )
        if self._cached_version != self.image.version:
            self._cached.clear()
            self._cached_version = self.image.version
        key = (name, _answer_kind(version))
        answer = self._cached.get(key)
        if answer is None:
            answer = self._cached[key] = self._make_topic(topic, version)
        return answer

    def topic_by_id(self, topic_id: bytes, version: int) -> TopicAnswer:
        """One topic by id; an error inside when there is none."""
        topic = self.image.topic_by_id(topic_id)
        if topic is None:
            return TopicAnswer(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
        return self.topic(topic.name, version)

    def metadata(self, names: Iterable[str] | None, version: int) -> MetadataResponse:
        """The whole response for these topics, or for all if None."""
        wanted = self.image.topics if names is None else names
        return self.envelope([self.topic(name, version) for name in wanted])

    def envelope(self, topics: list[TopicAnswer]) -> MetadataResponse:
        """Brokers, cluster and controller around topics that the handler has chosen."""
        return MetadataResponse(
            brokers=self.brokers(),
            cluster_id=self.image.cluster_id,
            controller_id=self.image.controller_id,
            topics=topics,
        )

    def describe_cluster(self) -> DescribeClusterResponse:
        """The answer to DescribeCluster, without authorised operations."""
        response = messages.DescribeClusterResponse
        return response(
            cluster_id=self.image.cluster_id,
            controller_id=self.image.controller_id,
            brokers=[
                response.Brokers(broker_id=id_, host=host, port=port, rack=rack)
                for id_, host, port, rack in self._reachable()
            ],
        )

    def describe_topics(
        self,
        names: Sequence[str] | None,
        limit: int,
        cursor: Cursor | None = None,
        may_describe: Callable[[str], bool] = lambda _: True,
    ) -> DescribeTopicPartitionsResponse:
        """Topics in order of name from the cursor on, at most `limit` partitions; None means all topics.

        At most 10,000 topics, too: unknown ones have no partitions. Those that the client may not describe
        have an error if they were named, and are left out otherwise.
        """
        matching = self._names_from(names, cursor)
        wanted = list(filter(may_describe, matching))
        response = messages.DescribeTopicPartitionsResponse()
        remaining = limit
        for name in wanted:
            first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
            if remaining <= 0 or len(response.topics) >= MAX_TOPICS_DESCRIBED:
                response.next_cursor = response.NextCursor(topic_name=name, partition_index=first)
                break
            topic = self.image.topics.get(name)
            if topic is None:
                response.topics.append(response.Topics(error_code=unknown_topic_error(name), name=name))
                continue
            indexes = [index for index in sorted(topic.partitions) if index >= first]
            response.topics.append(self._describe_topic(topic, indexes[:remaining]))
            if len(indexes) > remaining:
                next_index = indexes[remaining]
                response.next_cursor = response.NextCursor(topic_name=name, partition_index=next_index)
                break
            remaining -= len(indexes)
        if names is not None:
            response.topics += [
                response.Topics(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
                for name in matching
                if not may_describe(name)
            ]
        return response

    def _names_from(self, names: Sequence[str] | None, cursor: Cursor | None) -> list[str]:
        wanted = sorted(set(self.image.topics if names is None else names))
        if cursor is None:
            return wanted
        if cursor.partition_index < 0:
            raise KafkaError(
                f"the cursor's partition {cursor.partition_index} cannot be",
                error_code=ErrorCode.INVALID_REQUEST,
            )
        if names is not None and cursor.topic_name not in names:
            raise KafkaError(
                f"the cursor's topic {cursor.topic_name} is not among the topics asked for",
                error_code=ErrorCode.INVALID_REQUEST,
            )
        return [name for name in wanted if name >= cursor.topic_name]

    def _reachable(self) -> list[tuple[int, str, int, str | None]]:
        found = ((broker, broker.endpoint(self.listener)) for broker in self.image.brokers.values())
        return [
            (broker.broker_id, endpoint.host, endpoint.port, broker.rack)
            for broker, endpoint in found
            if endpoint is not None
        ]

    def _make_topic(self, topic: TopicMetadata, version: int) -> TopicAnswer:
        return TopicAnswer(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=[
                self._make_partition(index, partition, version)
                for index, partition in sorted(topic.partitions.items())
            ],
        )

    def _make_partition(self, index: int, partition: PartitionMetadata, version: int) -> PartitionAnswer:
        replicas, isr = list(partition.replicas), list(partition.isr)
        error = self._leader_error(partition.leader, version)
        if version == _VERSION_WITH_REPLICA_ERRORS:
            live_replicas, live_isr = self._reachable_of(replicas), self._reachable_of(isr)
            if error is ErrorCode.NONE and (live_replicas, live_isr) != (replicas, isr):
                error = ErrorCode.REPLICA_NOT_AVAILABLE
            replicas, isr = live_replicas, live_isr
        return PartitionAnswer(
            error_code=error,
            partition_index=index,
            leader_id=self._visible_leader(partition.leader),
            leader_epoch=partition.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=list(partition.offline_replicas),
        )

    def _describe_topic(
        self, topic: TopicMetadata, indexes: Sequence[int]
    ) -> DescribeTopicPartitionsResponse.Topics:
        return messages.DescribeTopicPartitionsResponse.Topics(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=[self._describe_partition(index, topic.partitions[index]) for index in indexes],
        )

    def _describe_partition(
        self, index: int, partition: PartitionMetadata
    ) -> DescribeTopicPartitionsResponse.Topics.Partitions:
        return messages.DescribeTopicPartitionsResponse.Topics.Partitions(
            error_code=self._leader_error(partition.leader, _FIRST_WITH_LISTENER_NOT_FOUND),
            partition_index=index,
            leader_id=self._visible_leader(partition.leader),
            leader_epoch=partition.leader_epoch,
            replica_nodes=list(partition.replicas),
            isr_nodes=list(partition.isr),
            eligible_leader_replicas=list(partition.eligible_leader_replicas),
            last_known_elr=list(partition.last_known_elr),
            offline_replicas=list(partition.offline_replicas),
        )

    def _visible_leader(self, leader: int) -> int:
        return leader if self.image.is_alive(leader, self.listener) else NO_LEADER

    def _leader_error(self, leader: int, version: int) -> ErrorCode:
        if self.image.is_alive(leader, self.listener):
            return ErrorCode.NONE
        if leader in self.image.brokers and version >= _FIRST_WITH_LISTENER_NOT_FOUND:
            return ErrorCode.LISTENER_NOT_FOUND
        return ErrorCode.LEADER_NOT_AVAILABLE

    def _reachable_of(self, broker_ids: Sequence[int]) -> list[int]:
        return [id_ for id_ in broker_ids if self.image.is_alive(id_, self.listener)]


def unknown_topic_error(name: str) -> ErrorCode:
    """The error for a topic that does not exist: its name may be invalid, too."""
    if topic_name_problem(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _answer_kind(version: int) -> int:
    """Versions that get the same topic share one."""
    if version == _VERSION_WITH_REPLICA_ERRORS:
        return version
    return min(version, _FIRST_WITH_LISTENER_NOT_FOUND) // _FIRST_WITH_LISTENER_NOT_FOUND + 1
