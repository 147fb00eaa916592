"""ConsumerGroupDescribe, API key 69: groups of the new protocol with their members.

Versions 0-1.  1: the protocol of each member.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.broker.security.authorized_operations import authorized_operations
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse


@handles(ApiKey.CONSUMER_GROUP_DESCRIBE, versions=(0, 1))
async def consumer_group_describe(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Each group has its own result."""
    rows = [
        await _describe(context, request, group_id)
        async for group_id in CooperativeYield().over(request.group_ids)
    ]
    return ConsumerGroupDescribeResponse(groups=rows)


async def _describe(
    context: RequestContext, request: ConsumerGroupDescribeRequest, group_id: str
) -> ConsumerGroupDescribeResponse.Groups:
    resource = Resource.group(group_id)
    try:
        context.authorize(Operation.DESCRIBE, resource)
        row = await context.services.groups.describe_consumer_group(group_id)
        _authorize_topics(context, row)
    except KafkaError as error:
        return ConsumerGroupDescribeResponse.Groups(
            group_id=group_id, error_code=error.error_code, error_message=str(error)
        )
    if request.include_authorized_operations and not row.error_code:
        row.authorized_operations = authorized_operations(context.is_allowed, resource)
    return row


def _authorize_topics(context: RequestContext, row: ConsumerGroupDescribeResponse.Groups) -> None:
    """Members list topics: a client that may not describe one of these does not see the members."""
    names = {name for member in row.members for name in member.subscribed_topic_names}
    for member in row.members:
        for assignment in (member.assignment, member.target_assignment):
            names.update(topic.topic_name for topic in assignment.topic_partitions)
    if not all(context.is_allowed(Operation.DESCRIBE, Resource.topic(name)) for name in names):
        raise KafkaError(
            "The group has described topic(s) that the client is not authorized to describe.",
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )
