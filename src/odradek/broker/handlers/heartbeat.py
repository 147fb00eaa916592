"""Heartbeat, API key 12: keeps a member of a classic group alive.

Versions 0-4.  1: throttle time.  3: static members.  4: flexible.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import HeartbeatRequest, HeartbeatResponse


@handles(ApiKey.HEARTBEAT, versions=(0, 4))
async def heartbeat(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    """Restart the session time-out; REBALANCE_IN_PROGRESS asks the member to join again."""
    context.authorize(Operation.READ, Resource.group(request.group_id))
    return await context.services.groups.heartbeat(request)
