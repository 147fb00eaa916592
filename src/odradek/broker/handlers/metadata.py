"""Metadata, API key 3: brokers and topics; missing topics may be created.

Versions 0-13.  1: null means all topics, racks, controller.  2: cluster id.  4: creation can be declined.
5: offline replicas.  7: leader epochs.  8: authorised operations.  9: flexible.  10: topic ids.  12: by id.
"""

from __future__ import annotations

import logging

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.store_calls import from_store
from odradek.broker.security.acls import CLUSTER, Operation, Resource
from odradek.broker.security.authorized_operations import authorized_on_cluster, authorized_operations
from odradek.cluster.metadata_answers import TopicAnswer
from odradek.cluster.topics.new_topics import NewTopic
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import MetadataRequest, MetadataResponse

logger = logging.getLogger(__name__)

ALL_TOPICS_BY_EMPTY_LIST = 0
BY_ID_FROM = 12
NO_TOPIC_ID = bytes(16)
CREATION_SECONDS = 5.0


@handles(ApiKey.METADATA, versions=(0, 13))
async def metadata(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """From the metadata image; unknown topics are created first where that is allowed."""
    answers = context.answers()
    if request.topics is None or (context.version == ALL_TOPICS_BY_EMPTY_LIST and not request.topics):
        names = context.services.image.topics
        allowed = [name for name in names if context.is_allowed(Operation.DESCRIBE, Resource.topic(name))]
        response = answers.metadata(allowed, context.version)
    else:
        response = answers.envelope(await _topics(context, request))
    if request.include_topic_authorized_operations:
        response.topics = [_with_operations(context, topic) for topic in response.topics]
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = authorized_on_cluster(context.is_allowed)
    return response


async def _topics(context: RequestContext, request: MetadataRequest) -> list[TopicAnswer]:
    """Each topic that is asked for, once."""
    deadline = context.services.loop.time() + CREATION_SECONDS
    wanted = {(topic.name, topic.topic_id): topic for topic in request.topics or ()}
    return [
        await _topic(context, request, topic, deadline)
        async for topic in CooperativeYield().over(wanted.values())
    ]


def _with_operations(context: RequestContext, topic: TopicAnswer) -> TopicAnswer:
    """A copy, since the cached responses are shared."""
    if topic.error_code:
        return topic
    answer = TopicAnswer(**{name: getattr(topic, name) for name in TopicAnswer.__slots__})
    resource = Resource.topic(topic.name or "")
    answer.topic_authorized_operations = authorized_operations(context.is_allowed, resource)
    return answer


async def _topic(
    context: RequestContext, request: MetadataRequest, wanted: MetadataRequest.Topics, deadline: float
) -> TopicAnswer:
    answers = context.answers()
    if wanted.topic_id != NO_TOPIC_ID and context.version >= BY_ID_FROM:
        return _topic_by_id(context, wanted.topic_id)
    name = wanted.name or ""
    if not context.is_allowed(Operation.DESCRIBE, Resource.topic(name)):
        return TopicAnswer(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
    answer = answers.topic(name, context.version)
    may_create = request.allow_auto_topic_creation and context.services.config().auto_create_topics_enable
    if answer.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not may_create:
        return answer
    if context.services.loop.time() > deadline:
        # A request that names thousands of new topics gets some of them now and the rest when it asks again.
        return TopicAnswer(error_code=ErrorCode.LEADER_NOT_AVAILABLE, name=name)
    try:
        _authorize_creation(context, name)
        await from_store(context.services.topics.create_topic(NewTopic(name)))
        await context.services.wait_for_topic(name)
    except KafkaError as error:
        if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            logger.info("topic %s was not created on demand: %s", name, error)
            return TopicAnswer(error_code=error.error_code, name=name)
    answer = answers.topic(name, context.version)
    if answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        # It is being created; the client retries.
        return TopicAnswer(error_code=ErrorCode.LEADER_NOT_AVAILABLE, name=name)
    return answer


def _topic_by_id(context: RequestContext, topic_id: bytes) -> TopicAnswer:
    topic = context.services.image.topic_by_id(topic_id)
    if topic is not None and not context.is_allowed(Operation.DESCRIBE, Resource.topic(topic.name)):
        # An id is no secret, but the name that belongs to it is.
        return TopicAnswer(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=None, topic_id=topic_id)
    return context.answers().topic_by_id(topic_id, context.version)


def _authorize_creation(context: RequestContext, name: str) -> None:
    """CREATE on the cluster, or on the topic."""
    if context.is_allowed(Operation.CREATE, CLUSTER):
        return
    context.authorize(Operation.CREATE, Resource.topic(name))
