"""Topics: create, list, describe, add partitions, delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from odradek.client.admin.base import AdminBase, ResultOrError, outcome_of, refuse_wrong_controller, require
from odradek.client.broker_errors import broker_error
from odradek.client.metadata import NO_NODE
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataResponse,
)

BROKER_DEFAULT = -1
_FIRST_DELETE_BY_ROW = 6


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; the broker's defaults apply to what is not given.

    `assignments` names the brokers of each partition, the preferred leader first; leave out the two numbers
    then.
    """

    name: str
    num_partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic that was created, or would have been; -1 and zeros if the broker is too old to return them."""

    name: str
    topic_id: UUID
    num_partitions: int
    replication_factor: int
    configs: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class TopicListing:
    """A topic in a list."""

    name: str
    topic_id: UUID
    is_internal: bool
    num_partitions: int


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition; `elr` is None if the broker does not return eligible leader replicas (KIP-966)."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica is not in sync."""
        return len(self.isr) < len(self.replicas)


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic with its partitions in order."""

    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def replication_factor(self) -> int:
        """The replicas of the first partition, as Kafka's tools count."""
        return len(self.partitions[0].replicas) if self.partitions else 0


class TopicAdmin(AdminBase):
    """The calls about topics."""

    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, ResultOrError[CreatedTopic]]:
        """Create topics; with `validate_only` only validate the request."""
        rows = [_new_topic_row(topic) for topic in topics]
        request = CreateTopicsRequest(
            topics=rows, timeout_ms=self.config.request_timeout_ms, validate_only=validate_only
        )

        async def attempt() -> dict[str, ResultOrError[CreatedTopic]]:
            response = await self.brokers.send_to_controller(request, CreateTopicsResponse)
            outcomes = {row.name: _created(row) for row in response.topics}
            refuse_wrong_controller(outcomes)
            return outcomes

        return await self.brokers.retry("creating topics", attempt, timeout_ms=timeout_ms)

    async def create_topic(
        self,
        name: str,
        *,
        num_partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, str] | None = None,
    ) -> CreatedTopic:
        """Create one topic; TopicAlreadyExists and similar errors are raised."""
        topic = NewTopic(name, num_partitions, replication_factor, configs=configs or {})
        return require((await self.create_topics([topic]))[name])

    async def delete_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, ResultOrError[None]]:
        """Delete topics with all their records."""
        names = list(names)
        request_timeout_ms = self.config.request_timeout_ms

        async def attempt() -> dict[str, ResultOrError[None]]:
            metadata = await self.brokers.ensure_fresh()
            if metadata.controller_id == NO_NODE:
                raise broker_error(ErrorCode.NOT_CONTROLLER)
            connection = await self.brokers.connection(metadata.controller_id)
            request = DeleteTopicsRequest(timeout_ms=request_timeout_ms)
            if connection.versions.serves(ApiKey.DELETE_TOPICS, at_least=_FIRST_DELETE_BY_ROW):
                request.topics = [DeleteTopicsRequest.Topics(name=name) for name in names]
            else:
                request.topic_names = names
            response = await connection.send_request(request, DeleteTopicsResponse)
            outcomes = {
                row.name: outcome_of(None, row.error_code, row.error_message)
                for row in response.responses
                if row.name is not None
            }
            refuse_wrong_controller(outcomes)
            return outcomes

        return await self.brokers.retry("deleting topics", attempt, timeout_ms=timeout_ms)

    async def delete_topic(self, name: str) -> None:
        """Delete one topic; UnknownTopicOrPartition and similar errors are raised."""
        require((await self.delete_topics([name]))[name])

    async def list_topics(self, *, include_internal: bool = False) -> list[TopicListing]:
        """All topics, by name."""
        listed = [
            TopicListing(row.name, UUID(bytes=row.topic_id), row.is_internal, len(row.partitions))
            for row in (await self._metadata(None)).topics
            if row.name is not None and (include_internal or not row.is_internal)
        ]
        return sorted(listed, key=lambda topic: topic.name)

    async def describe_topics(
        self, names: Iterable[str] | None = None
    ) -> dict[str, ResultOrError[TopicDescription]]:
        """Topics with their partitions, or all of them, internal ones included."""
        if names is None:
            names = [topic.name for topic in await self.list_topics(include_internal=True)]
        names = sorted(set(names))
        if not names:
            return {}
        connection = await self.brokers.retry("connecting", self.brokers.any_connection)
        if connection.versions.serves(ApiKey.DESCRIBE_TOPIC_PARTITIONS):
            rows = [DescribeTopicPartitionsRequest.Topics(name=name) for name in names]
            return await self._describe_by_page(DescribeTopicPartitionsRequest(topics=rows))
        response = await self._metadata(names)
        return {row.name: _described_by_metadata(row) for row in response.topics if row.name is not None}

    async def describe_topic(self, name: str) -> TopicDescription:
        """One topic; UnknownTopicOrPartition is raised."""
        return require((await self.describe_topics([name]))[name])

    async def create_partitions(
        self,
        totals: Mapping[str, int],
        *,
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, ResultOrError[None]]:
        """Increase the number of partitions of topics; `assignments` has the brokers of each new one."""
        request = CreatePartitionsRequest(
            timeout_ms=self.config.request_timeout_ms, validate_only=validate_only
        )
        for name, total in totals.items():
            placed = (assignments or {}).get(name)
            rows = None
            if placed is not None:
                row_class = CreatePartitionsRequest.Topics.Assignments
                rows = [row_class(broker_ids=list(brokers)) for brokers in placed]
            request.topics.append(CreatePartitionsRequest.Topics(name=name, count=total, assignments=rows))

        async def attempt() -> dict[str, ResultOrError[None]]:
            response = await self.brokers.send_to_controller(request, CreatePartitionsResponse)
            outcomes = {
                row.name: outcome_of(None, row.error_code, row.error_message) for row in response.results
            }
            refuse_wrong_controller(outcomes)
            return outcomes

        return await self.brokers.retry("creating partitions", attempt, timeout_ms=timeout_ms)

    async def _metadata(self, names: Sequence[str] | None) -> MetadataResponse:
        rows = None if names is None else [MetadataRequest.Topics(name=name) for name in names]
        request = MetadataRequest(topics=rows, allow_auto_topic_creation=False)
        return await self.brokers.retry(
            "listing topics", lambda: self.brokers.send_to_any(request, MetadataResponse)
        )

    async def _describe_by_page(
        self, request: DescribeTopicPartitionsRequest
    ) -> dict[str, ResultOrError[TopicDescription]]:
        """The response comes in pages of some thousand partitions; a topic may span several."""
        topics: dict[str, DescribeTopicPartitionsResponse.Topics] = {}
        while True:
            response = await self.brokers.retry(
                "describing topics",
                lambda: self.brokers.send_to_any(request, DescribeTopicPartitionsResponse),
            )
            for row in response.topics:
                assert row.name is not None
                if row.name in topics:
                    topics[row.name].partitions += row.partitions
                else:
                    topics[row.name] = row
            following = response.next_cursor
            if following is None:
                return {name: _described(row) for name, row in topics.items()}
            request.cursor = DescribeTopicPartitionsRequest.Cursor(
                topic_name=following.topic_name, partition_index=following.partition_index
            )


def _new_topic_row(topic: NewTopic) -> CreateTopicsRequest.Topics:
    return CreateTopicsRequest.Topics(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            CreateTopicsRequest.Topics.Assignments(partition_index=index, broker_ids=list(brokers))
            for index, brokers in topic.assignments.items()
        ],
        configs=[
            CreateTopicsRequest.Topics.Configs(name=name, value=value)
            for name, value in topic.configs.items()
        ],
    )


def _created(row: CreateTopicsResponse.Topics) -> ResultOrError[CreatedTopic]:
    created = CreatedTopic(
        row.name,
        UUID(bytes=row.topic_id),
        row.num_partitions,
        row.replication_factor,
        {config.name: config.value for config in row.configs or []},
    )
    return outcome_of(created, row.error_code, row.error_message)


def _described(row: DescribeTopicPartitionsResponse.Topics) -> ResultOrError[TopicDescription]:
    assert row.name is not None
    partitions = [
        PartitionDescription(
            partition.partition_index,
            partition.leader_id if partition.leader_id != NO_NODE else None,
            partition.leader_epoch,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
            tuple(partition.eligible_leader_replicas or ()),
            tuple(partition.last_known_elr or ()),
        )
        for partition in row.partitions
    ]
    partitions.sort(key=lambda partition: partition.partition)
    described = TopicDescription(row.name, UUID(bytes=row.topic_id), row.is_internal, tuple(partitions))
    return outcome_of(described, row.error_code, _missing(row.name, row.error_code))


def _described_by_metadata(row: MetadataResponse.Topics) -> ResultOrError[TopicDescription]:
    assert row.name is not None
    partitions = [
        PartitionDescription(
            partition.partition_index,
            partition.leader_id if partition.leader_id != NO_NODE else None,
            partition.leader_epoch,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
        )
        for partition in row.partitions
    ]
    partitions.sort(key=lambda partition: partition.partition)
    described = TopicDescription(row.name, UUID(bytes=row.topic_id), row.is_internal, tuple(partitions))
    return outcome_of(described, row.error_code, _missing(row.name, row.error_code))


def _missing(name: str, error_code: int) -> str | None:
    is_missing = error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return f"there is no topic {name}" if is_missing else None
