"""LeaderAndIsr, API key 4: the controller makes this broker leader or follower of partitions.

Versions 5-7.  5: topic ids, full and incremental requests.  6: leader recovery state.  7: KRaft controllers.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import LeaderAndIsrRequest, LeaderAndIsrResponse


@handles(ApiKey.LEADER_AND_ISR, versions=(5, 7))
async def leader_and_isr(context: RequestContext, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    """Answered when the disk has what must be there first."""
    return await context.services.control.leader_and_isr(request)
