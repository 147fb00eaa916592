"""FindCoordinator, API key 10: the broker that coordinates a group or a transactional id.

Versions 0-6.  1: key types.  3: flexible.  4: several keys.  5, 6: as 4.  Share groups are not served.
"""

from __future__ import annotations

from odradek.broker.coordinators.internal_topics import consumer_offsets, partition_of, transaction_state
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

Row = FindCoordinatorResponse.Coordinators

SEVERAL_KEYS_FROM = 4
GROUP, TRANSACTION = 0, 1
NO_NODE = -1
# Each one is hashed in Python, and may be long.
KEYS_PER_YIELD = 100


@handles(ApiKey.FIND_COORDINATOR, versions=(0, 6))
async def find_coordinator(
    context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """The leader of the partition that the key belongs to; the internal topic is made if need be."""
    if context.version >= SEVERAL_KEYS_FROM:
        rows = [
            await _find(context, request.key_type, key)
            async for key in CooperativeYield(KEYS_PER_YIELD).over(request.coordinator_keys)
        ]
        return FindCoordinatorResponse(coordinators=rows)
    row = await _find(context, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=row.error_code,
        error_message=row.error_message,
        node_id=row.node_id,
        host=row.host,
        port=row.port,
    )


async def _find(context: RequestContext, key_type: int, key: str) -> Row:
    row = Row(key=key, node_id=NO_NODE, port=NO_NODE, error_message=None)
    try:
        await _fill(context, key_type, row)
    except KafkaError as error:
        row.error_code, row.error_message = error.error_code, str(error)
    return row


async def _fill(context: RequestContext, key_type: int, row: Row) -> None:
    services = context.services
    if key_type == TRANSACTION:
        context.authorize(Operation.DESCRIBE, Resource.transaction(row.key))
        plan = transaction_state(services.config())
    elif key_type == GROUP:
        context.authorize(Operation.DESCRIBE, Resource.group(row.key))
        plan = consumer_offsets(services.config())
    else:
        raise KafkaError(f"coordinator type {key_type}", error_code=ErrorCode.INVALID_REQUEST)
    partition = await partition_of(services, plan, row.key)
    broker = services.image.brokers.get(partition.leader)
    endpoint = broker.endpoint(context.listener) if broker is not None else None
    if broker is None or endpoint is None:
        raise KafkaError(
            "the leader of its partition is not on this listener",
            error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        )
    row.node_id, row.host, row.port = broker.broker_id, endpoint.host, endpoint.port
