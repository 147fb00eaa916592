"""DescribeTopicPartitions, API key 75: topics in pieces, with a cursor to go on from.

Version 0.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.broker.security.authorized_operations import authorized_operations
from odradek.cluster.metadata_answers import Cursor
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

Row = DescribeTopicPartitionsResponse.Topics


@handles(ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions=(0, 0))
def describe_topic_partitions(
    context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """From the metadata image; no topics named means all that the client may describe."""
    cursor = request.cursor
    names = [topic.name for topic in request.topics]
    most = context.services.config().max_request_partition_size_limit
    try:
        response = context.answers().describe_topics(
            names or None,
            max(1, min(request.response_partition_limit, most)),
            None if cursor is None else Cursor(cursor.topic_name, cursor.partition_index),
            lambda name: context.is_allowed(Operation.DESCRIBE, Resource.topic(name)),
        )
    except KafkaError as error:
        # This API has no place for an error but the topics.
        rows = [Row(name=name, error_code=error.error_code) for name in names]
        return DescribeTopicPartitionsResponse(topics=rows)
    for topic in response.topics:
        if topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            resource = Resource.topic(topic.name or "")
            topic.topic_authorized_operations = authorized_operations(context.is_allowed, resource)
    return response
