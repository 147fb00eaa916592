"""ControlledShutdown, API key 7: a broker that stops asks the controller to move its leaders.

Versions 2-3.  2: broker epoch.  3: flexible.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ControlledShutdownRequest
from odradek.protocol.structs import Message


@handles(ApiKey.CONTROLLED_SHUTDOWN, versions=(2, 3))
async def controlled_shutdown(context: RequestContext, request: ControlledShutdownRequest) -> Message:
    """Answered when the new leaders are written; lists the partitions that the broker still leads."""
    return await context.services.controller_requests.handle(request)
