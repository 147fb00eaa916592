"""ListGroups, API key 16: the groups that this broker coordinates.

Versions 0-5.  1: throttle time.  3: flexible.  4: by state.  5: by type.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import CLUSTER, Operation, Resource
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ListGroupsRequest, ListGroupsResponse


@handles(ApiKey.LIST_GROUPS, versions=(0, 5))
async def list_groups(context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    """The groups of this broker with the requested states and types."""
    groups = await context.services.groups.list_groups(request.states_filter, request.types_filter)
    if not context.is_allowed(Operation.DESCRIBE, CLUSTER):
        groups = [
            one for one in groups if context.is_allowed(Operation.DESCRIBE, Resource.group(one.group_id))
        ]
    return ListGroupsResponse(groups=groups)
