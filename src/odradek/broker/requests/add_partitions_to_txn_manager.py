"""AddPartitionsToTxn requests of this broker to transaction coordinators: one at a time to each broker.

What is requested meanwhile waits, and goes with the next request: all transactions together, each in a row
of its own (as Kafka's AddPartitionsToTxnManager does). A row holds one producer and epoch, and adds
partitions or verifies them; what contradicts it goes with the request after that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import OdradekError
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from odradek.transactions.transaction import ProducerIdAndEpoch

logger = logging.getLogger(__name__)

COORDINATOR_VERSION = 5

_Row = AddPartitionsToTxnRequest.Transactions

Codes = Mapping[TopicPartition, ErrorCode]
_NO_RESPONSE = AddPartitionsToTxnResponse(error_code=ErrorCode.NETWORK_EXCEPTION)

Send = Callable[[int, AddPartitionsToTxnRequest], Awaitable[AddPartitionsToTxnResponse]]


class TransactionPartitions(NamedTuple):
    """Partitions to be added to a transaction, or to be verified as part of it."""

    transactional_id: str
    producer: ProducerIdAndEpoch
    is_verify_only: bool
    partitions: frozenset[TopicPartition]

    def is_compatible_with(self, other: TransactionPartitions) -> bool:
        """Whether both can be in one row, or in two rows of one request."""
        return self.transactional_id != other.transactional_id or (
            self.producer == other.producer and self.is_verify_only == other.is_verify_only
        )


class _Waiting(NamedTuple):
    wanted: TransactionPartitions
    answer: asyncio.Future[Codes]


class AddPartitionsToTxnManager:
    """Owned by the broker's services, on its loop; `send` raises OdradekError if there is no response."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Send) -> None:
        self._loop = loop
        self._send = send
        self._waiting: dict[int, list[_Waiting]] = {}
        """By broker, which has an entry while a request to it is under way."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def add_or_verify(self, broker_id: int, wanted: TransactionPartitions) -> Codes:
        """The error code of each partition; NETWORK_EXCEPTION if the broker does not respond."""
        answer: asyncio.Future[Codes] = self._loop.create_future()
        waiting = self._waiting.get(broker_id)
        if waiting is None:
            self._waiting[broker_id] = [_Waiting(wanted, answer)]
            task = self._loop.create_task(self._send_all(broker_id))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            waiting.append(_Waiting(wanted, answer))
        return await answer

    async def _send_all(self, broker_id: int) -> None:
        batch: list[_Waiting] = []
        try:
            while batch := self._next_batch(broker_id):
                try:
                    response = await self._send(broker_id, request_of([one.wanted for one in batch]))
                    answers = _answers_of(batch, response)
                except Exception as error:  # a task root: no producer may be left without an answer
                    if not isinstance(error, OdradekError):
                        logger.exception("broker %d could not be asked about transactions", broker_id)
                    # What has come meanwhile fails as well: its producer looks for the coordinator again.
                    batch += self._waiting[broker_id]
                    self._waiting[broker_id] = []
                    answers = _answers_of(batch, _NO_RESPONSE)
                for one, codes in zip(batch, answers, strict=True):
                    if not one.answer.done():  # the client may be gone
                        one.answer.set_result(codes)
        finally:
            for one in batch + self._waiting.pop(broker_id):
                one.answer.cancel()

    def _next_batch(self, broker_id: int) -> list[_Waiting]:
        """What can be sent together of what waits, in the order in which it was requested."""
        batch: list[_Waiting] = []
        left: list[_Waiting] = []
        rows: dict[str, TransactionPartitions] = {}
        for one in self._waiting[broker_id]:
            first = rows.setdefault(one.wanted.transactional_id, one.wanted)
            (batch if first.is_compatible_with(one.wanted) else left).append(one)
        self._waiting[broker_id] = left
        return batch


def request_of(requested: Sequence[TransactionPartitions]) -> AddPartitionsToTxnRequest:
    """One row for each transactional id, with all partitions that are requested for it."""
    rows: dict[str, _Row] = {}
    partitions: dict[str, dict[str, set[int]]] = {}
    for transactional_id, producer, is_verify_only, asked in requested:
        rows[transactional_id] = _Row(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            verify_only=is_verify_only,
        )
        by_topic = partitions.setdefault(transactional_id, {})
        for topic, index in asked:
            by_topic.setdefault(topic, set()).add(index)
    for transactional_id, row in rows.items():
        row.topics = [
            _Row.Topics(name=name, partitions=sorted(indexes))
            for name, indexes in partitions[transactional_id].items()
        ]
    return AddPartitionsToTxnRequest(transactions=list(rows.values()))


def codes_by_id(response: AddPartitionsToTxnResponse) -> Mapping[str, Codes]:
    """The error codes, by transactional id."""
    return {
        result.transactional_id: {
            TopicPartition(topic.name, row.partition_index): ErrorCode(row.partition_error_code)
            for topic in result.topic_results
            for row in topic.results_by_partition
        }
        for result in response.results_by_transaction
    }


def _answers_of(batch: Sequence[_Waiting], response: AddPartitionsToTxnResponse) -> list[Codes]:
    codes = codes_by_id(response)
    return [_codes_of(one.wanted, response, codes) for one in batch]


def _codes_of(
    wanted: TransactionPartitions, response: AddPartitionsToTxnResponse, codes: Mapping[str, Codes]
) -> Codes:
    of_id = codes.get(wanted.transactional_id, {})
    without_row = ErrorCode(response.error_code) or ErrorCode.UNKNOWN_SERVER_ERROR
    return {partition: of_id.get(partition, without_row) for partition in wanted.partitions}
