"""AllocateProducerIds, API key 67: a broker asks the controller for a block of producer ids (KIP-730).

Version 0.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import AllocateProducerIdsRequest
from odradek.protocol.structs import Message


@handles(ApiKey.ALLOCATE_PRODUCER_IDS, versions=(0, 0))
async def allocate_producer_ids(context: RequestContext, request: AllocateProducerIdsRequest) -> Message:
    """Our own brokers allocate theirs in the store; this one is for those of Kafka."""
    return await context.services.controller_requests.handle(request)
