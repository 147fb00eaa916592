"""CreateTopics, API key 19: create topics; returns when clients can find their leaders.

Versions 2-7, as Kafka 4.  5: flexible; partitions, replicas and settings in the response.  7: topic ids.
"""

from __future__ import annotations

from collections import Counter

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.store_calls import from_store
from odradek.broker.security.acls import CLUSTER, Operation, Resource
from odradek.broker.settings.describe import describe_topic
from odradek.cluster.topics.new_topics import UNSPECIFIED, NewTopic
from odradek.cluster.topics.topic_admin import CreatedTopic
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import CreateTopicsRequest, CreateTopicsResponse

Asked = CreateTopicsRequest.Topics
Row = CreateTopicsResponse.Topics

# Kafka's limit: a request for more would keep the controller from everything else.
MAX_PARTITIONS_PER_REQUEST = 10_000


@handles(ApiKey.CREATE_TOPICS, versions=(2, 7))
async def create_topics(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Each topic has its own result; all are created first, then awaited together."""
    deadline = context.services.loop.time() + request.timeout_ms / 1000
    counts = Counter(topic.name for topic in request.topics)
    if _partitions_asked_for(context, request) > MAX_PARTITIONS_PER_REQUEST:
        return await _refuse_all(counts)
    rows = [_refusal(name, _twice()) for name, count in counts.items() if count > 1]
    made: list[Row] = []
    async for asked in CooperativeYield().over(request.topics):
        if counts[asked.name] == 1:
            row = await _create(context, asked, deadline, validate_only=request.validate_only)
            (rows if row.error_code else made).append(row)
    if not request.validate_only:
        for row in made:
            await _wait(context, row, deadline)
    return CreateTopicsResponse(topics=rows + made)


def _partitions_asked_for(context: RequestContext, request: CreateTopicsRequest) -> int:
    default = context.services.config().num_partitions
    counts = (
        len(topic.assignments) or (default if topic.num_partitions == UNSPECIFIED else topic.num_partitions)
        for topic in request.topics
    )
    return sum(max(count, 1) for count in counts)


async def _refuse_all(names: Counter[str]) -> CreateTopicsResponse:
    refused = KafkaError(
        f"Excessively large number of partitions per request: the limit is {MAX_PARTITIONS_PER_REQUEST}.",
        error_code=ErrorCode.POLICY_VIOLATION,
    )
    return CreateTopicsResponse(
        topics=[_refusal(name, refused) async for name in CooperativeYield().over(names)]
    )


async def _create(context: RequestContext, asked: Asked, deadline: float, *, validate_only: bool) -> Row:
    services = context.services
    try:
        if not context.is_allowed(Operation.CREATE, CLUSTER):
            context.authorize(Operation.CREATE, Resource.topic(asked.name))
        if services.loop.time() > deadline:
            raise KafkaError(
                "The request timed out before it was processed.", error_code=ErrorCode.REQUEST_TIMED_OUT
            )
        topic = _new_topic(asked)
        created = await from_store(
            services.topics.create_topic(topic, validate_only=validate_only), deadline - services.loop.time()
        )
    except KafkaError as error:
        return _refusal(asked.name, error)
    return _describe(context, topic, created)


def _new_topic(asked: Asked) -> NewTopic:
    null = [config.name for config in asked.configs if config.value is None]
    if null:
        raise KafkaError(
            f"Null value not supported for topic configs: {', '.join(null)}",
            error_code=ErrorCode.INVALID_CONFIG,
        )
    assignment = {one.partition_index: one.broker_ids for one in asked.assignments}
    if len(assignment) != len(asked.assignments):
        raise KafkaError("A partition has two assignments.", error_code=ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    return NewTopic(
        asked.name,
        asked.num_partitions,
        asked.replication_factor,
        assignment,
        {config.name: config.value or "" for config in asked.configs},
    )


def _describe(context: RequestContext, topic: NewTopic, created: CreatedTopic) -> Row:
    row = Row(
        name=topic.name,
        topic_id=created.topic_id.bytes if created.topic_id is not None else bytes(16),
        error_message=None,
    )
    if not context.is_allowed(Operation.DESCRIBE_CONFIGS, Resource.topic(topic.name)):
        row.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return row
    row.num_partitions = len(created.assignment)
    row.replication_factor = len(created.assignment[0])
    row.configs = [
        Row.Configs(
            name=one.name,
            value=one.value,
            read_only=one.is_read_only,
            config_source=one.source,
            is_sensitive=one.is_sensitive,
        )
        for one in describe_topic(context.services.config(), topic.configs)
    ]
    return row


async def _wait(context: RequestContext, row: Row, deadline: float) -> None:
    remaining_ms = int((deadline - context.services.loop.time()) * 1000)
    if not await context.services.wait_for_topic(row.name, remaining_ms, row.num_partitions):
        row.error_code = ErrorCode.REQUEST_TIMED_OUT
        full = [one.path for one in context.services.replicas.logs.online_directories() if one.is_full]
        why = f": the disk of {', '.join(full)} is full" if full else ""
        row.error_message = f"The topic was made, but not all its partitions have leaders yet{why}."


def _twice() -> KafkaError:
    return KafkaError("Duplicate topic name.", error_code=ErrorCode.INVALID_REQUEST)


def _refusal(name: str, error: KafkaError) -> Row:
    return Row(name=name, error_code=error.error_code, error_message=str(error))
