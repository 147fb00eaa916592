"""Asks for the producer id that makes idempotence possible."""

from __future__ import annotations

from odradek.client.broker_errors import check
from odradek.client.network.brokers import Brokers
from odradek.client.producer.batches.idempotence import ProducerId
from odradek.protocol.messages import InitProducerIdRequest, InitProducerIdResponse

NO_TRANSACTION_TIMEOUT = 2**31 - 1


async def ask_producer_id(brokers: Brokers) -> ProducerId:
    """A new id with its first epoch, from any broker."""
    request = InitProducerIdRequest(
        transactional_id=None,
        transaction_timeout_ms=NO_TRANSACTION_TIMEOUT,
        producer_id=-1,
        producer_epoch=-1,
    )
    answer = await brokers.ask_any(request, InitProducerIdResponse)
    check(answer.error_code)
    return ProducerId(answer.producer_id, answer.producer_epoch)
