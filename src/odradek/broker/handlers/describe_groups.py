"""DescribeGroups, API key 15: classic groups with their members.

Versions 0-6.  3: authorised operations.  4: instance ids.  5: flexible.  6: no such group.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.broker.security.authorized_operations import authorized_operations
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse

GROUP_ERRORS_FROM = 6


@handles(ApiKey.DESCRIBE_GROUPS, versions=(0, 6))
async def describe_groups(context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Each group has its own result."""
    rows = [
        await _describe(context, request, group_id)
        async for group_id in CooperativeYield().over(request.groups)
    ]
    return DescribeGroupsResponse(groups=rows)


async def _describe(
    context: RequestContext, request: DescribeGroupsRequest, group_id: str
) -> DescribeGroupsResponse.Groups:
    resource = Resource.group(group_id)
    knows_group_errors = context.version >= GROUP_ERRORS_FROM
    try:
        context.authorize(Operation.DESCRIBE, resource)
        row = await context.services.groups.describe(group_id, knows_group_errors=knows_group_errors)
    except KafkaError as error:
        return DescribeGroupsResponse.Groups(group_id=group_id, error_code=error.error_code)
    if request.include_authorized_operations and not row.error_code:
        row.authorized_operations = authorized_operations(context.is_allowed, resource)
    return row
