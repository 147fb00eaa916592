"""DeleteTopics, API key 20: delete topics; returns when metadata and logs are without them.

Versions 1-6, as Kafka 4.  3: deletion can be disabled.  4: flexible.  5: messages.  6: by topic id.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from uuid import UUID

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.store_calls import StoreNotReached, from_store
from odradek.broker.security.acls import Operation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordination.store import Watcher
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse

Asked = DeleteTopicsRequest.Topics
Row = DeleteTopicsResponse.Responses

DELETION_DISABLED_SINCE = 3
NO_TOPIC_ID = bytes(16)
STORE_RETRY_SECONDS = 0.5
"""How often to look, in case the store cannot be reached or the session of the watch has expired."""


@handles(ApiKey.DELETE_TOPICS, versions=(1, 6))
async def delete_topics(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Each topic has its own result; all are marked first, then awaited together."""
    deadline = context.services.loop.time() + request.timeout_ms / 1000
    asked = [*request.topics, *(Asked(name=name) for name in request.topic_names)]
    counts = Counter(_key(context, topic) for topic in asked)
    rows: list[Row] = []
    marked: list[tuple[Row, UUID | None]] = []
    topics = {_key(context, topic): topic for topic in asked}
    async for key, topic in CooperativeYield().over(topics.items()):
        row = Row(name=topic.name, topic_id=topic.topic_id)
        rows.append(row)
        try:
            if counts[key] > 1:
                raise KafkaError("Duplicate topic.", error_code=ErrorCode.INVALID_REQUEST)
            marked.append((row, await _mark(context, row, deadline)))
        except KafkaError as error:
            _refuse(context, row, error)
    for row, topic_id in marked:
        await _wait(context, row, topic_id, deadline)
    return DeleteTopicsResponse(responses=rows)


def _key(context: RequestContext, topic: Asked) -> str | bytes:
    """Equal for two entries that mean the same topic, by name or by id."""
    if topic.name is not None:
        return topic.name
    return context.services.image.names_by_id.get(topic.topic_id, topic.topic_id)


async def _mark(context: RequestContext, row: Row, deadline: float) -> UUID | None:
    """Have the deletion written down; the id of the topic that will go."""
    services = context.services
    if row.name is None:
        name = _name_of(context, row.topic_id)
        # An id is no secret, but the name that belongs to it is.
        context.authorize(Operation.DESCRIBE, Resource.topic(name))
        row.name = name
    elif row.topic_id != NO_TOPIC_ID:
        raise KafkaError(
            "You may not specify both topic name and topic id.", error_code=ErrorCode.INVALID_REQUEST
        )
    context.authorize(Operation.DELETE, Resource.topic(row.name))
    if services.loop.time() > deadline:
        raise KafkaError(
            "The request timed out before it was processed.", error_code=ErrorCode.REQUEST_TIMED_OUT
        )
    topic_id = await from_store(services.topics.topic_id(row.name), deadline - services.loop.time())
    await from_store(services.topics.delete_topic(row.name), deadline - services.loop.time())
    if topic_id is not None:
        row.topic_id = topic_id.bytes
    return topic_id


def _name_of(context: RequestContext, topic_id: bytes) -> str:
    if topic_id == NO_TOPIC_ID:
        raise KafkaError("Neither topic name nor id were specified.", error_code=ErrorCode.INVALID_REQUEST)
    topic = context.services.image.topic_by_id(topic_id)
    if topic is None:
        raise KafkaError("No topic has this id.", error_code=ErrorCode.UNKNOWN_TOPIC_ID)
    return topic.name


def _refuse(context: RequestContext, row: Row, error: KafkaError) -> None:
    row.error_code, row.error_message = error.error_code, str(error)
    is_disabled = error.error_code is ErrorCode.TOPIC_DELETION_DISABLED
    if is_disabled and context.version < DELETION_DISABLED_SINCE:
        row.error_code = ErrorCode.INVALID_REQUEST


async def _wait(context: RequestContext, row: Row, topic_id: UUID | None, deadline: float) -> None:
    """Wait until a topic of this name can be created; another client may have done so already."""
    services, name = context.services, row.name or ""
    is_gone = await services.wait_until(lambda: _is_gone_here(context, name, row.topic_id), deadline)
    is_gone = is_gone and await _wait_for_store(context, name, topic_id, deadline)
    if not is_gone:
        row.error_code = ErrorCode.REQUEST_TIMED_OUT
        row.error_message = "The topic is marked for deletion, but is not gone yet."


def _is_gone_here(context: RequestContext, name: str, topic_id: bytes) -> bool:
    """Neither in the metadata nor among the logs: dropping a replica renames its directory."""
    services = context.services
    topic = services.image.topics.get(name)
    if topic is not None and topic.topic_id == topic_id:
        return False
    return services.replicas.topic_name(topic_id) != name


async def _wait_for_store(context: RequestContext, name: str, topic_id: UUID | None, deadline: float) -> bool:
    """Until the store does not have the topic; False if it still does at the deadline."""
    loop = context.services.loop
    changed = asyncio.Event()
    while await _is_stored(context, name, topic_id, deadline, lambda event: changed.set()):
        remaining = deadline - loop.time()
        if remaining <= 0:
            return False
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(changed.wait(), min(remaining, STORE_RETRY_SECONDS))
        changed.clear()
    return True


async def _is_stored(
    context: RequestContext, name: str, topic_id: UUID | None, deadline: float, watcher: Watcher
) -> bool:
    services = context.services
    reading = services.topics.topic_id(name, watcher)
    try:
        return await from_store(reading, deadline - services.loop.time()) == topic_id
    except StoreNotReached:
        return True  # as far as we know
    except KafkaError:
        return False
