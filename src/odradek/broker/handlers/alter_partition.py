"""AlterPartition, API key 56: a leader asks the controller to change its in-sync replicas (KIP-497).

Versions 2-3.  2: topic ids.  3: the broker epoch of each replica (KIP-903).
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import AlterPartitionRequest
from odradek.protocol.structs import Message


@handles(ApiKey.ALTER_PARTITION, versions=(2, 3))
async def alter_partition(context: RequestContext, request: AlterPartitionRequest) -> Message:
    """Answered when the new state is written."""
    return await context.services.controller_requests.handle(request)
