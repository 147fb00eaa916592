"""LeaveGroup, API key 13: members go, by themselves or removed by an administrator.

Versions 0-5.  1: throttle time.  3: several members, by instance id as well.  4: flexible.  5: a reason,
which is not kept.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

SEVERAL_MEMBERS_FROM = 3


@handles(ApiKey.LEAVE_GROUP, versions=(0, 5))
async def leave_group(context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Each member has its own error code; before version 3 it is the error code of the response."""
    context.authorize(Operation.READ, Resource.group(request.group_id))
    if context.version >= SEVERAL_MEMBERS_FROM:
        return await context.services.groups.leave(request)
    request.members = [LeaveGroupRequest.Members(member_id=request.member_id)]
    response = await context.services.groups.leave(request)
    return LeaveGroupResponse(error_code=response.members[0].error_code)
