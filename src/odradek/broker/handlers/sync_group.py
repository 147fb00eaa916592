"""SyncGroup, API key 14: the leader of a classic group sends the assignment, each member receives its own.

Versions 0-5.  1: throttle time.  3: static members.  4: flexible.  5: protocol type and name must be there.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import SyncGroupRequest, SyncGroupResponse

PROTOCOLS_FROM = 5


@handles(ApiKey.SYNC_GROUP, versions=(0, 5))
async def sync_group(context: RequestContext, request: SyncGroupRequest) -> SyncGroupResponse:
    """Wait until the leader has assigned."""
    context.authorize(Operation.READ, Resource.group(request.group_id))
    if context.version >= PROTOCOLS_FROM and None in (request.protocol_type, request.protocol_name):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return await context.services.groups.sync(request)
