"""ConsumerGroupHeartbeat, API key 68: join a group of the new protocol (KIP-848), stay, leave.

Versions 0-1.  1: subscriptions by pattern; the client makes its member id.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.groups.consumer.consumer_protocol import ConsumerHeartbeat
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

OWN_MEMBER_IDS_FROM = 1
JOIN_EPOCH = 0


@handles(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=(0, 1))
async def consumer_group_heartbeat(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """One heartbeat, and with it one step towards the assignment."""
    context.authorize(Operation.READ, Resource.group(request.group_id))
    member_id = request.member_id
    if not member_id and context.version < OWN_MEMBER_IDS_FROM and request.member_epoch == JOIN_EPOCH:
        member_id = context.services.groups.new_uuid()
    names, owned = request.subscribed_topic_names, request.topic_partitions
    for name in names or ():
        context.authorize(Operation.DESCRIBE, Resource.topic(name))
    heartbeat = ConsumerHeartbeat(
        member_id=member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=None if names is None else frozenset(names),
        regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=(
            None
            if owned is None
            else frozenset((topic.topic_id, index) for topic in owned for index in topic.partitions)
        ),
        client_id=context.client_id or "",
        client_host=context.client_host,
        may_describe=lambda name: context.is_allowed(Operation.DESCRIBE, Resource.topic(name)),
    )
    return await context.services.groups.consumer_heartbeat(request.group_id, heartbeat)
