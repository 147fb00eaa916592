"""ElectLeaders, API key 43: elect preferred leaders, or unclean ones where no other is left.

Versions 0-2.  1: unclean elections (KIP-460).  2: flexible.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ElectLeadersRequest
from odradek.protocol.structs import Message


@handles(ApiKey.ELECT_LEADERS, versions=(0, 2))
async def elect_leaders(context: RequestContext, request: ElectLeadersRequest) -> Message:
    """Answered by the controller when the new leaders are written and in its broker's metadata."""
    return await context.services.controller_requests.handle(request)
