"""The producer for code on a loop: the same batches and the same sender, on the caller's own loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack, overload

from odradek.client.arguments import as_group, topic_name, topic_partition, with_metadata
from odradek.client.committed_offsets import ConsumerGroupMetadata, OffsetAndMetadata
from odradek.client.config import check_keywords_only
from odradek.client.errors import ClientClosed
from odradek.client.producer.batches.accumulator import OnDelivery, TopicQueues
from odradek.client.producer.batches.batch import DeliveryFuture, RecordMetadata, smallest_batch_size
from odradek.client.producer.batches.idempotence import ProducerId
from odradek.client.producer.batches.partitioners import Partitioner
from odradek.client.producer.batches.record_preparation import (
    HeadersIn,
    Interceptor,
    Key,
    Preparation,
    ProducerRecord,
    Ready,
    Serializer,
    Value,
)
from odradek.client.producer.config import producer_config
from odradek.client.producer.engine import ProducerEngine, make_accumulator
from odradek.client.producer.errors import BufferExhausted, RecordTooLarge
from odradek.client.producer.statistics import ProducerStatistics
from odradek.client.producer.transactions.errors import FatalTransactionError, TransactionStateError
from odradek.client.settings import ProducerSettings
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.producer.tables import Table, TableDelivery


class AsyncProducer(Generic[Key, Value]):
    """Sends records to any Kafka from a running loop.

    async with AsyncProducer(bootstrap_servers="localhost:9092") as producer:
        metadata = await producer.send_and_wait("orders", b"tea", key=b"customer 1")

    `send` waits only until the record is accepted, and returns a future to await; callbacks run on the loop.
    """

    @overload
    def __init__(
        self,
        *,
        key_serializer: Serializer[Key],
        value_serializer: Serializer[Value],
        partitioner: Partitioner | None = None,
        interceptors: Sequence[Interceptor[Key, Value]] = (),
        **settings: Unpack[ProducerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncProducer[Key, bytes],
        *,
        key_serializer: Serializer[Key],
        partitioner: Partitioner | None = None,
        interceptors: Sequence[Interceptor[Key, bytes]] = (),
        **settings: Unpack[ProducerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncProducer[bytes, Value],
        *,
        value_serializer: Serializer[Value],
        partitioner: Partitioner | None = None,
        interceptors: Sequence[Interceptor[bytes, Value]] = (),
        **settings: Unpack[ProducerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncProducer[bytes, bytes],
        *,
        partitioner: Partitioner | None = None,
        interceptors: Sequence[Interceptor[bytes, bytes]] = (),
        **settings: Unpack[ProducerSettings],
    ) -> None: ...
    def __init__(
        self,
        *misplaced: object,
        key_serializer: Serializer[Any] | None = None,
        value_serializer: Serializer[Any] | None = None,
        partitioner: Partitioner | None = None,
        interceptors: Sequence[Interceptor[Any, Any]] = (),
        **settings: Any,
    ) -> None:
        check_keywords_only("AsyncProducer", misplaced)
        self.config = producer_config(settings)
        self._preparation: Preparation[Any, Any] = Preparation(
            key_serializer, value_serializer, partitioner, interceptors
        )
        self._accumulator = make_accumulator(self.config)
        self._memory_freed = asyncio.Event()
        self._accumulator.on_memory = self._memory_freed.set
        self._made: ProducerEngine | None = None

    @property
    def _engine(self) -> ProducerEngine:
        """Created at first use, when a loop is running."""
        self._check_usable()
        if self._made is None:
            self._made = ProducerEngine(self.config, self._accumulator, asyncio.get_running_loop().call_soon)
        return self._made

    async def send(
        self,
        topic: str,
        value: Value | None = None,
        key: Key | None = None,
        partition: int | None = None,
        headers: HeadersIn | None = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryFuture:
        """Add a record and return the future of its delivery. Waits only for metadata and for memory."""
        engine = self._engine
        self._check_sendable()
        given = ProducerRecord(topic, value, key, partition, headers, timestamp)
        record = self._preparation.intercepted(given)
        deadline = self._deadline()
        queues = await self._find(engine, record.topic, deadline)
        ready = self._preparation.ready(record, queues)
        on_delivery = self._preparation.with_interceptors(on_delivery)
        while True:
            future = self._accumulator.append(
                queues,
                ready.partition,
                ready.key,
                ready.value,
                ready.headers,
                ready.timestamp_ms,
                on_delivery,
            )
            if future is not None:
                return future
            await self._resolve_append_failure(engine, ready, queues, deadline)

    # Transactions; see `Producer`.

    async def init_transactions(self) -> None:
        """Register the `transactional_id`; see `Producer.init_transactions`."""
        await self._engine.transactions.init()

    async def begin_transaction(self) -> None:
        """Open a transaction."""
        await self._engine.begin_transaction()

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        group: ConsumerGroupMetadata | str,
    ) -> None:
        """Commit offsets of a group together with the records; see `Producer.send_offsets_to_transaction`."""
        await self._engine.transactions.send_offsets(with_metadata(offsets), as_group(group))

    async def commit_transaction(self) -> None:
        """Deliver all records and commit; see `Producer.commit_transaction`."""
        await self._engine.commit_transaction()

    async def abort_transaction(self) -> None:
        """Abort; see `Producer.abort_transaction`."""
        await self._engine.transactions.abort()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """A transaction that is committed at the end of the block, or aborted if the block raises."""
        await self.begin_transaction()
        try:
            yield self
            await self.commit_transaction()
        except FatalTransactionError:
            raise
        except BaseException:
            # A commit that timed out may still succeed: it can only be repeated.
            with suppress(TransactionStateError):
                await self.abort_transaction()
            raise

    async def join_transaction(
        self, producer: ProducerId, sequences: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """Low level: send records in a transaction of another process; see `Producer.join_transaction`."""
        given = {topic_partition(partition): number for partition, number in (sequences or {}).items()}
        await self._engine.join_transaction(ProducerId(*producer), given)

    async def transaction_sequences(self) -> dict[TopicPartition, int]:
        """Low level: the sequence of the next record of each partition."""
        return await self._engine.sequences()

    async def send_and_wait(
        self,
        topic: str,
        value: Value | None = None,
        key: Key | None = None,
        partition: int | None = None,
        headers: HeadersIn | None = None,
        timestamp: int | None = None,
    ) -> RecordMetadata:
        """Send a record and wait until it is delivered."""
        return await (await self.send(topic, value, key, partition, headers, timestamp))

    async def send_table(self, topic: str, table: Table) -> TableDelivery:
        """Send the rows of an Arrow, polars or pandas table; see `Producer.send_table`."""
        from odradek.client.producer.tables import (  # noqa: PLC0415
            TableDelivery,
            as_arrow,
            highest_partition,
            table_batches,
        )

        self._check_sendable()
        rows = as_arrow(table)
        queues = await self._find_with(topic, highest_partition(rows) + 1)
        batches = []
        for batch in table_batches(self._accumulator, queues, rows):
            while not self._accumulator.add_encoded(queues, batch):
                await self._wait_for_memory(batch.size, self._deadline())
            batches.append(batch)
        return TableDelivery(batches)

    async def _find(self, engine: ProducerEngine, topic: str, deadline: float) -> TopicQueues:
        queues = self._accumulator.topics.get(topic)
        if queues is None:
            topic_name(topic)
            await engine.find_topic(topic, _left_ms(deadline))
            queues = self._accumulator.topics[topic]
        return queues

    async def _find_with(self, topic: str, count: int) -> TopicQueues:
        """A topic, of which the brokers are asked again if fewer partitions are known."""
        deadline = self._deadline()
        queues = await self._find(self._engine, topic, deadline)
        if count > len(queues.queues):
            await self._engine.find_topic_again(topic, _left_ms(deadline))
        return queues

    async def _resolve_append_failure(
        self, engine: ProducerEngine, ready: Ready, queues: TopicQueues, deadline: float
    ) -> None:
        self._check_sendable()
        if ready.partition >= len(queues.queues):
            await engine.find_partition(ready.topic, ready.partition, _left_ms(deadline))
            return
        await self._wait_for_memory(smallest_batch_size(ready.key, ready.value, ready.headers), deadline)

    async def _wait_for_memory(self, size: int, deadline: float) -> None:
        self._check_sendable()
        problem = RecordTooLarge.check(size, self.config.max_request_size, self.config.buffer_memory)
        if problem is not None:
            raise problem
        self._accumulator.begin_to_wait()
        self._memory_freed.clear()
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + deadline - time.monotonic()):
                while self._accumulator.memory_left < max(size, self._accumulator.batch_size):
                    self._check_sendable()
                    await self._memory_freed.wait()
                    self._memory_freed.clear()
        except TimeoutError:
            raise BufferExhausted(size, self.config.max_block_ms) from None
        finally:
            self._accumulator.blocked -= 1

    def _deadline(self) -> float:
        """The deadline of a call that begins now."""
        return time.monotonic() + self.config.max_block_ms / 1000

    def _check_usable(self) -> None:
        problem = self._accumulator.problem
        if problem is not None:
            raise problem.with_traceback(None)

    def _check_sendable(self) -> None:
        self._check_usable()
        refusal = self._accumulator.refusal
        if refusal is not None:
            raise refusal.with_traceback(None)

    async def flush(self, timeout: float | None = None) -> bool:
        """Send everything now and wait until it is delivered or has failed; False after `timeout` seconds."""
        return await self._engine.flush(timeout)

    async def partitions_for(self, topic: str, at_least: int = 0) -> int:
        """How many partitions a topic has; the brokers are asked again if fewer than `at_least` are known."""
        return len((await self._find_with(topic, at_least)).queues)

    def statistics(self) -> ProducerStatistics:
        """The counters of this producer."""
        accumulator = self._accumulator
        return replace(
            self._made.statistics if self._made is not None else ProducerStatistics(),
            records_sent=accumulator.records,
            buffered_bytes=accumulator.memory - accumulator.memory_left,
        )

    async def close(self, timeout: float | None = None) -> None:
        """Deliver all records sent so far, within `timeout` seconds if given; the rest fail."""
        if self._made is not None and self._accumulator.problem is None:
            await self._made.close(timeout)
        self._accumulator.fail_sends(ClientClosed("producer"))

    def __repr__(self) -> str:
        return f"<AsyncProducer to {', '.join(self.config.bootstrap_servers)}>"

    async def __aenter__(self) -> Self:
        self._check_usable()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


def _left_ms(deadline: float) -> int:
    return max(0, round((deadline - time.monotonic()) * 1000))
