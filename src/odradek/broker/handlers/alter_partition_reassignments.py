"""AlterPartitionReassignments, API key 45: give partitions other replicas, or cancel that (KIP-455).

Versions 0-1.  1: the replication factor may be kept from changing (KIP-860).
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import AlterPartitionReassignmentsRequest
from odradek.protocol.structs import Message


@handles(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=(0, 1))
async def alter_partition_reassignments(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> Message:
    """Answered by the controller when the reassignments have begun."""
    return await context.services.controller_requests.handle(request)
