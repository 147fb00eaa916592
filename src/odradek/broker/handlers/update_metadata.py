"""UpdateMetadata, API key 6: the controller reports brokers, leaders and in-sync replicas to every broker.

Versions 7-8.  7: topic ids.  8: full and incremental requests.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import UpdateMetadataRequest, UpdateMetadataResponse


@handles(ApiKey.UPDATE_METADATA, versions=(7, 8))
def update_metadata(context: RequestContext, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
    """Answered at once: it does not wait for LeaderAndIsr requests."""
    return context.services.control.update_metadata(request)
