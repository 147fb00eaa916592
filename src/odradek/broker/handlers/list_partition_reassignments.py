"""ListPartitionReassignments, API key 46: the reassignments in progress (KIP-455).

Version 0.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ListPartitionReassignmentsRequest
from odradek.protocol.structs import Message


@handles(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions=(0, 0))
async def list_partition_reassignments(
    context: RequestContext, request: ListPartitionReassignmentsRequest
) -> Message:
    """Answered by the controller."""
    return await context.services.controller_requests.handle(request)
