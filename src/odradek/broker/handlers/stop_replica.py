"""StopReplica, API key 5: the controller stops replicas of this broker, and has them deleted.

Versions 3-4.  3: leader epoch and deletion for each partition.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import StopReplicaRequest, StopReplicaResponse


@handles(ApiKey.STOP_REPLICA, versions=(3, 4))
async def stop_replica(context: RequestContext, request: StopReplicaRequest) -> StopReplicaResponse:
    """Answered when the logs are renamed; their files are deleted later."""
    return await context.services.control.stop_replica(request)
