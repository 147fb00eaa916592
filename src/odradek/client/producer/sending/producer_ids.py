"""Requests the producer id for idempotence."""

from __future__ import annotations

from odradek.client.broker_errors import check
from odradek.client.network.brokers import Brokers
from odradek.client.producer.batches.idempotence import ProducerId
from odradek.protocol.messages import InitProducerIdRequest, InitProducerIdResponse

NO_TRANSACTION_TIMEOUT = 2**31 - 1


async def request_producer_id(brokers: Brokers) -> ProducerId:
    """A new id with its first epoch, from any broker."""
    request = InitProducerIdRequest(
        transactional_id=None,
        transaction_timeout_ms=NO_TRANSACTION_TIMEOUT,
        producer_id=-1,
        producer_epoch=-1,
    )
    response = await brokers.send_to_any(request, InitProducerIdResponse)
    check(response.error_code)
    return ProducerId(response.producer_id, response.producer_epoch)
