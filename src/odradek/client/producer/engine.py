"""The part of a producer that lives on a loop: connections, metadata, the sender. Used by both producers."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping

from odradek.client.broker_errors import broker_error
from odradek.client.errors import BrokerError, ClientClosed, ClientError, DeadlineExceeded
from odradek.client.network.brokers import Brokers
from odradek.client.producer.batches.accumulator import Accumulator
from odradek.client.producer.batches.batch import ProducerBatch
from odradek.client.producer.batches.idempotence import ProducerId
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.sending.sender import Sender
from odradek.client.producer.sending.single_batch_sender import SingleBatchSender
from odradek.client.producer.statistics import ProducerStatistics
from odradek.client.producer.transactions.errors import TransactionStateError
from odradek.client.producer.transactions.manager import TransactionManager
from odradek.client.producer.transactions.requests import TransactionRequests
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition

_log = logging.getLogger("odradek.producer")


def make_accumulator(config: ProducerConfig) -> Accumulator:
    """The accumulator that a configuration asks for."""
    accumulator = Accumulator(
        batch_size=config.batch_size,
        buffer_memory=config.buffer_memory,
        max_request_size=config.max_request_size,
        randrange=random.randrange,
        now_ms=lambda: time.monotonic() * 1000,
    )
    accumulator.hashes_keys = not config.partitioner_ignore_keys
    return accumulator


class ProducerEngine:
    """Sends what is in an accumulator. Created and used on one loop."""

    def __init__(
        self, config: ProducerConfig, accumulator: Accumulator, wake: Callable[[Callable[[], None]], object]
    ):
        self._config = config
        self._accumulator = accumulator
        self.statistics = ProducerStatistics()
        self._brokers = Brokers(config, "producer", creates_topics=True)
        self._sender = Sender(config, accumulator, self._brokers, self.statistics)
        self.single_batch_sender = SingleBatchSender(self._sender)
        if config.transactional_id is not None:
            requests = TransactionRequests(self._brokers, config.transactional_id, config.max_block_ms)
            self._sender.transactions = TransactionManager(
                requests, accumulator, self._sender, config.transaction_timeout_ms
            )
        accumulator.wake = lambda: wake(self._sender.pump)
        self._sender.pump()

    async def find_topic(self, name: str, timeout_ms: int) -> None:
        """Wait until the accumulator knows the topic; an error if it is not available."""
        metadata = self._brokers.metadata
        metadata.want([name])

        async def attempt() -> None:
            if name not in metadata.topics:
                metadata.mark_stale()
            await self._brokers.ensure_fresh()
            code = metadata.errors.get(name, ErrorCode.NONE)
            if code != ErrorCode.NONE or not metadata.topics.get(name):
                metadata.mark_stale()
                raise broker_error(code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name}")
            self._sender.apply_metadata()

        await self._brokers.retry(f"finding topic {name}", attempt, timeout_ms=timeout_ms)

    async def find_topic_again(self, topic: str, timeout_ms: int) -> None:
        """Ask the brokers for a topic that is known already: it may have more partitions now."""
        self._brokers.metadata.mark_stale()
        await self.find_topic(topic, timeout_ms)

    async def find_partition(self, topic: str, partition: int, timeout_ms: int) -> None:
        """Look again for a partition that did not exist; UnknownTopicOrPartition if it still does not."""
        await self.find_topic_again(topic, timeout_ms)
        count = len(self._brokers.metadata.topics[topic].partitions)
        if partition >= count:
            raise broker_error(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic} has {count} partitions, and no {partition}",
            )

    def pump(self) -> None:
        """Have the sender check at once what can be sent."""
        self._sender.pump()

    async def flush(self, timeout_s: float | None) -> bool:
        """Send everything now and wait until it is delivered or has failed; False after the time-out."""
        left = self._accumulator.unfinished()
        self._sender.pump()
        try:
            async with asyncio.timeout(timeout_s):
                while left:
                    await _first_records_of(left)
                    # Of a batch that was split meanwhile, the first record does not stand for the others.
                    left = [one for batch in left for one in batch.current_batches() if not one.is_done]
        except TimeoutError:
            return False
        return True

    # Transactions.

    @property
    def transactions(self) -> TransactionManager:
        """The transactions of this producer; an error if it has no transactional id."""
        if self._sender.transactions is None:
            raise TransactionStateError("transactions need a transactional_id")
        return self._sender.transactions

    async def begin_transaction(self) -> None:
        """Open a transaction."""
        self.transactions.begin()

    async def commit_transaction(self) -> None:
        """Deliver all records of the transaction and commit it."""
        self.transactions.begin_commit()
        timeout_ms = self._config.max_block_ms
        if not await self.flush(timeout_ms / 1000):
            raise DeadlineExceeded("delivering the records of the transaction", timeout_ms)
        await self.transactions.commit()

    async def join_transaction(self, producer: ProducerId, sequences: Mapping[TopicPartition, int]) -> None:
        """Send records in a transaction of another process."""
        await self.transactions.join(producer, sequences)

    async def sequences(self) -> dict[TopicPartition, int]:
        """The sequence of the next record of each partition."""
        return self._sender.sequences()

    async def _abort_open_transaction(self, timeout_s: float | None) -> None:
        manager = self._sender.transactions
        if manager is None or not manager.is_open:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await manager.abort()
        except (BrokerError, ClientError, TimeoutError) as error:
            _log.warning(
                "the open transaction of %s is left to time out: %s", manager.transactional_id, error
            )

    async def close(self, timeout_s: float | None) -> None:
        """Deliver within the time-out what was sent, fail the rest, and close all connections.

        An open transaction is aborted.
        """
        await self._abort_open_transaction(timeout_s)
        self._accumulator.fail_sends(ClientClosed("producer"))
        await self.flush(timeout_s)
        self._sender.stop()
        self._accumulator.fail_all(ClientClosed("producer"))
        await self._brokers.close()


async def _first_records_of(batches: list[ProducerBatch]) -> None:
    """Wait until the first record of each is delivered or has failed."""
    all_ended = asyncio.Event()
    count = len(batches)

    def ended(_: object) -> None:
        nonlocal count
        count -= 1
        if count == 0:
            all_ended.set()

    for batch in batches:
        batch.future(0).add_done_callback(ended)
    await all_ended.wait()
