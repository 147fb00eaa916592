"""ConsumerGroupDescribe, API key 69: groups of the new protocol with their members.

Versions 0-1.  1: which protocol a member speaks.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse


@handles(ApiKey.CONSUMER_GROUP_DESCRIBE, versions=(0, 1))
async def consumer_group_describe(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Each group has its own answer."""
    rows = [
        await _describe(context, group_id) async for group_id in CooperativeYield().over(request.group_ids)
    ]
    return ConsumerGroupDescribeResponse(groups=rows)


async def _describe(context: RequestContext, group_id: str) -> ConsumerGroupDescribeResponse.Groups:
    try:
        return await context.services.groups.describe_consumer_group(group_id)
    except KafkaError as error:
        return ConsumerGroupDescribeResponse.Groups(
            group_id=group_id, error_code=error.error_code, error_message=str(error)
        )
