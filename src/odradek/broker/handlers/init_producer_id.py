"""InitProducerId, API key 22: an id for an idempotent producer.

Versions 0-5.  2: flexible.  3: an id to continue with.  Transactional ids are refused until there is a
transaction coordinator, with the error that FindCoordinator returns, on which clients stop at once.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.store_calls import from_store
from odradek.broker.security.acls import CLUSTER, Operation, Resource, ResourceType
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import InitProducerIdRequest, InitProducerIdResponse

FIRST_EPOCH = 0


@handles(ApiKey.INIT_PRODUCER_ID, versions=(0, 5))
async def init_producer_id(context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """A new id each time: without a transactional id there is no earlier life to fence."""
    if request.transactional_id is not None:
        context.authorize(Operation.WRITE, Resource.transaction(request.transactional_id))
        empty = request.transactional_id == ""
        code = ErrorCode.INVALID_REQUEST if empty else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
    # A client that may write to any topic may do so idempotently.
    if not context.is_allowed_anywhere(Operation.WRITE, ResourceType.TOPIC):
        context.authorize(Operation.IDEMPOTENT_WRITE, CLUSTER)
    producer_id = await from_store(context.services.producer_ids.next())
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=FIRST_EPOCH)
