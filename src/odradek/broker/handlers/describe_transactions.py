"""DescribeTransactions, API key 65: the state of transactions by their transactional ids.

Version 0.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeTransactionsRequest, DescribeTransactionsResponse

_Row = DescribeTransactionsResponse.TransactionStates


@handles(ApiKey.DESCRIBE_TRANSACTIONS, versions=(0, 0))
async def describe_transactions(
    context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Each transactional id has its own result."""
    return DescribeTransactionsResponse(
        transaction_states=[
            await _describe(context, transactional_id)
            async for transactional_id in CooperativeYield().over(request.transactional_ids)
        ]
    )


async def _describe(context: RequestContext, transactional_id: str) -> _Row:
    row = _Row(transactional_id=transactional_id)
    try:
        context.authorize(Operation.DESCRIBE, Resource.transaction(transactional_id))
        transaction = await context.services.transactions.describe(transactional_id)
    except KafkaError as error:
        row.error_code = error.error_code
        return row
    row.transaction_state = transaction.state.label
    row.transaction_timeout_ms = transaction.timeout_ms
    row.transaction_start_time_ms = transaction.start_ms
    row.producer_id = transaction.producer_id
    row.producer_epoch = transaction.producer_epoch
    by_topic: dict[str, list[int]] = {}
    # Only those that the client may describe.
    for topic, index in sorted(transaction.partitions):
        if context.is_allowed(Operation.DESCRIBE, Resource.topic(topic)):
            by_topic.setdefault(topic, []).append(index)
    row.topics = [_Row.Topics(topic=topic, partitions=indexes) for topic, indexes in by_topic.items()]
    return row
