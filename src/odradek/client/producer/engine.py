"""The part of a producer that lives on a loop: connections, metadata, the sender. Both faces drive one."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from odradek.client.broker_errors import broker_error
from odradek.client.errors import ClientClosed
from odradek.client.network.brokers import Brokers
from odradek.client.producer.batches.accumulator import Accumulator
from odradek.client.producer.batches.batch import ProducerBatch
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.sending.sender import Sender
from odradek.client.producer.sending.single_batch_sender import SingleBatchSender
from odradek.client.producer.statistics import ProducerStatistics
from odradek.common.error_codes import ErrorCode


def make_accumulator(config: ProducerConfig) -> Accumulator:
    """The accumulator that a configuration asks for."""
    accumulator = Accumulator(
        batch_size=config.batch_size,
        buffer_memory=config.buffer_memory,
        max_request_size=config.max_request_size,
        dice=random.randrange,
        now_ms=lambda: time.monotonic() * 1000,
    )
    accumulator.hashes_keys = not config.partitioner_ignore_keys
    return accumulator


class Engine:
    """Sends what is in an accumulator. Made and used on one loop."""

    def __init__(
        self, config: ProducerConfig, accumulator: Accumulator, wake: Callable[[Callable[[], None]], object]
    ):
        self._config = config
        self._accumulator = accumulator
        self.statistics = ProducerStatistics()
        self._brokers = Brokers(config, "producer", creates_topics=True)
        self._sender = Sender(config, accumulator, self._brokers, self.statistics)
        self.single_batch_sender = SingleBatchSender(self._sender)
        accumulator.wake = lambda: wake(self._sender.pump)
        self._sender.pump()

    async def find_topic(self, name: str, timeout_ms: int) -> None:
        """Wait until the accumulator knows the topic; an error if it cannot be had."""
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

    async def find_partition(self, topic: str, partition: int, timeout_ms: int) -> None:
        """Ask again for a partition that was not there; UnknownTopicOrPartition if it still is not."""
        self._brokers.metadata.mark_stale()
        await self.find_topic(topic, timeout_ms)
        count = len(self._brokers.metadata.topics[topic].partitions)
        if partition >= count:
            raise broker_error(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic} has {count} partitions, and no {partition}",
            )

    def pump(self) -> None:
        """Look at once what can be sent."""
        self._sender.pump()

    async def flush(self, timeout_s: float | None) -> bool:
        """Send everything now and wait for its end, whatever it is; False if that takes too long."""
        left = self._accumulator.unfinished()
        self._sender.pump()
        try:
            async with asyncio.timeout(timeout_s):
                while left:
                    await _first_records_of(left)
                    # Of a batch that was split meanwhile, the first record says nothing about the others.
                    left = [leaf for batch in left for leaf in batch.leaves() if not leaf.is_done]
        except TimeoutError:
            return False
        return True

    async def close(self, timeout_s: float | None) -> None:
        """Deliver what is there within the time, fail the rest, and close all connections."""
        self._accumulator.refuse(ClientClosed("producer"))
        await self.flush(timeout_s)
        self._sender.stop()
        self._accumulator.fail_all(ClientClosed("producer"))
        await self._brokers.close()


async def _first_records_of(batches: list[ProducerBatch]) -> None:
    """Wait until each of their first records has met its fate."""
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
