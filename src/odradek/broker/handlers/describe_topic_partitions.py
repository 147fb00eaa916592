"""DescribeTopicPartitions, API key 75: topics in pieces, with a cursor to go on from.

Version 0.
"""

from __future__ import annotations

from odradek.broker.context import RequestContext
from odradek.broker.dispatch import handles
from odradek.cluster.metadata_answers import Cursor
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

MAX_PARTITIONS = 2000


@handles(ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions=(0, 0))
def describe_topic_partitions(
    context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """From the metadata image; no topics named means all of them."""
    cursor = request.cursor
    return context.answers().describe_topics(
        [topic.name for topic in request.topics] or None,
        max(1, min(request.response_partition_limit, MAX_PARTITIONS)),
        None if cursor is None else Cursor(cursor.topic_name, cursor.partition_index),
    )
