"""DeleteGroups, API key 42: end groups that have no members, with their offsets.

Versions 0-2.  2: flexible.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse


@handles(ApiKey.DELETE_GROUPS, versions=(0, 2))
async def delete_groups(context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Each group has its own error code."""
    rows = [
        await _delete(context, group_id) async for group_id in CooperativeYield().over(request.groups_names)
    ]
    return DeleteGroupsResponse(results=rows)


async def _delete(context: RequestContext, group_id: str) -> DeleteGroupsResponse.Results:
    row = DeleteGroupsResponse.Results(group_id=group_id)
    try:
        context.authorize(Operation.DELETE, Resource.group(group_id))
        await context.services.groups.delete(group_id)
    except KafkaError as error:
        row.error_code = error.error_code
    return row
