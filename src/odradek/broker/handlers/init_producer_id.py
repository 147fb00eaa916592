"""InitProducerId, API key 22: an id for an idempotent producer, or the next epoch of a transactional one.

Versions 0-5.  2: flexible.  3: an id to continue with (KIP-360).  4: PRODUCER_FENCED (KIP-588).
5: TRANSACTION_ABORTABLE.  Not 6: two-phase commit (KIP-939) is unstable in Kafka.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.store_calls import from_store
from odradek.broker.requests.transaction_errors import PRODUCER_FENCED_FROM, error_for_version
from odradek.broker.security.acls import CLUSTER, Operation, Resource, ResourceType
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import InitProducerIdRequest, InitProducerIdResponse
from odradek.transactions.operations import Initialization
from odradek.transactions.transaction import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdAndEpoch

FIRST_EPOCH = 0


@handles(ApiKey.INIT_PRODUCER_ID, versions=(0, 5))
async def init_producer_id(context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Without a transactional id a new id each time: there is no earlier producer to fence."""
    if request.transactional_id is not None:
        return await _initialize(context, request, request.transactional_id)
    # A client that may write to any topic may do so idempotently.
    if not context.is_allowed_anywhere(Operation.WRITE, ResourceType.TOPIC):
        context.authorize(Operation.IDEMPOTENT_WRITE, CLUSTER)
    if _is_half(request):
        return _refused(ErrorCode.INVALID_REQUEST)
    producer_id = await from_store(context.services.producer_ids.next())
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=FIRST_EPOCH)


async def _initialize(
    context: RequestContext, request: InitProducerIdRequest, transactional_id: str
) -> InitProducerIdResponse:
    context.authorize(Operation.WRITE, Resource.transaction(transactional_id))
    if _is_half(request):
        return _refused(ErrorCode.INVALID_REQUEST)
    expected = None
    if request.producer_id != NO_PRODUCER_ID:
        expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    wanted = Initialization(transactional_id, request.transaction_timeout_ms, expected)
    try:
        initialized = await context.services.transactions.initialize(wanted)
    except KafkaError as error:
        code = error_for_version(error.error_code, context.version, PRODUCER_FENCED_FROM[context.api_key])
        return _refused(code)
    if initialized.error_code is not ErrorCode.NONE:
        return _refused(initialized.error_code)
    return InitProducerIdResponse(
        producer_id=initialized.producer.producer_id, producer_epoch=initialized.producer.producer_epoch
    )


def _is_half(request: InitProducerIdRequest) -> bool:
    """Whether only one of producer id and epoch is given."""
    return (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH)


def _refused(error_code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error_code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )
