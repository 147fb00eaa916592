"""ListTransactions, API key 66: the transactions that this broker coordinates.

Versions 0-2.  1: only those that run for longer than a duration.  2: a pattern of the transactional id.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ListTransactionsRequest, ListTransactionsResponse
from odradek.transactions.admin import TransactionFilter, pattern_of
from odradek.transactions.transaction import STATE_OF_LABEL

_Row = ListTransactionsResponse.TransactionStates


@handles(ApiKey.LIST_TRANSACTIONS, versions=(0, 2))
async def list_transactions(
    context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """Ids that the client may not describe are left out."""
    unknown = [label for label in request.state_filters if label not in STATE_OF_LABEL]
    states = [STATE_OF_LABEL[label] for label in request.state_filters if label in STATE_OF_LABEL]
    response = ListTransactionsResponse(unknown_state_filters=unknown)
    if request.state_filters and not states:
        return response
    try:
        wanted = TransactionFilter(
            frozenset(states),
            frozenset(request.producer_id_filters),
            request.duration_filter,
            pattern_of(request.transactional_id_pattern),
        )
        listed = await context.services.transactions.list_transactions(wanted)
    except KafkaError as error:
        response.error_code = error.error_code
        return response
    response.transaction_states = [
        _Row(
            transactional_id=one.transactional_id,
            producer_id=one.producer_id,
            transaction_state=one.state.label,
        )
        for one in listed
        if context.is_allowed(Operation.DESCRIBE, Resource.transaction(one.transactional_id))
    ]
    return response
