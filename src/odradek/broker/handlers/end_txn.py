"""EndTxn, API key 26: commit or abort a transaction.

Versions 0-5.  2: PRODUCER_FENCED.  3: flexible.  4: TRANSACTION_ABORTABLE.  5: transactions v2, the producer
id and epoch of the next transaction are returned.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.transaction_errors import PRODUCER_FENCED_FROM, error_for_version
from odradek.broker.security.acls import Operation, Resource
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import EndTxnRequest, EndTxnResponse
from odradek.transactions.operations import EndRequest
from odradek.transactions.transaction import ProducerIdAndEpoch

V2_FROM = 5


@handles(ApiKey.END_TXN, versions=(0, 5))
async def end_txn(context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    """Returns when the decision is committed; the markers are written afterwards."""
    context.authorize(Operation.WRITE, Resource.transaction(request.transactional_id))
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    client_version = 2 if context.version >= V2_FROM else 0
    try:
        following = await context.services.transactions.end(
            EndRequest(request.transactional_id, producer, request.committed, client_version)
        )
    except KafkaError as error:
        code = error_for_version(error.error_code, context.version, PRODUCER_FENCED_FROM[context.api_key])
        return EndTxnResponse(error_code=code)
    return EndTxnResponse(producer_id=following.producer_id, producer_epoch=following.producer_epoch)
