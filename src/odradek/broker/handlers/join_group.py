"""JoinGroup, API key 11: become a member of a classic group; the leader gets all members.

Versions 0-9.  1: rebalance time-out.  4: new members are given an id first (KIP-394).  5: static members
(KIP-345).  6: flexible.  7: protocol type.  8: a reason, which is not kept.  9: the leader may skip the
assignment.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.groups.classic.membership import Joining
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import JoinGroupRequest, JoinGroupResponse

KNOWN_MEMBER_IDS_FROM = 4
NULL_PROTOCOL_FROM = 7
SKIPPING_FROM = 9


@handles(ApiKey.JOIN_GROUP, versions=(0, 9))
async def join_group(context: RequestContext, request: JoinGroupRequest) -> JoinGroupResponse:
    """Wait until the rebalance is complete: every member has joined, or the rebalance timeout has passed."""
    context.authorize(Operation.READ, Resource.group(request.group_id))
    try:
        response = await context.services.groups.join(request.group_id, _joining(context, request))
    except KafkaError as error:
        member_id = "" if error.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED else request.member_id
        response = JoinGroupResponse(error_code=error.error_code, member_id=member_id, protocol_name=None)
    if response.protocol_name is None and context.version < NULL_PROTOCOL_FROM:
        response.protocol_name = ""
    return response


def _joining(context: RequestContext, request: JoinGroupRequest) -> Joining:
    client_id = context.client_id or ""
    rebalance_timeout_ms = request.rebalance_timeout_ms
    return Joining(
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        client_id=client_id,
        client_host=context.client_host,
        session_timeout_ms=request.session_timeout_ms,
        # Version 0 has none of its own.
        rebalance_timeout_ms=request.session_timeout_ms if rebalance_timeout_ms < 0 else rebalance_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple((offered.name, offered.metadata) for offered in request.protocols),
        new_member_id=context.services.groups.new_member_id(request.group_instance_id or client_id),
        requires_known_member_id=context.version >= KNOWN_MEMBER_IDS_FROM,
        can_skip_assignment=context.version >= SKIPPING_FROM,
    )
