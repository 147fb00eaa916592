"""The producer for code without a loop: `send` only fills batches, a thread in the background sends them."""

from __future__ import annotations

import os
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack, overload

from odradek.client.arguments import as_group, topic_name, topic_partition, with_metadata
from odradek.client.committed_offsets import ConsumerGroupMetadata, OffsetAndMetadata
from odradek.client.config import check_keywords_only
from odradek.client.errors import ClientForked
from odradek.client.network.background_loop import BackgroundLoop
from odradek.client.producer.batches import batch as batch_module
from odradek.client.producer.batches.accumulator import OnDelivery, TopicQueues
from odradek.client.producer.batches.batch import DeliveryFuture, RecordMetadata, smallest_batch_size
from odradek.client.producer.batches.idempotence import ProducerId
from odradek.client.producer.batches.partitioners import Partitioner
from odradek.client.producer.batches.record_preparation import (
    Interceptor,
    Key,
    Preparation,
    ProducerRecord,
    Ready,
    Serializer,
    Value,
)
from odradek.client.producer.batches.send_path import SendPath
from odradek.client.producer.config import producer_config
from odradek.client.producer.engine import ProducerEngine, make_accumulator
from odradek.client.producer.errors import BufferExhausted, RecordTooLarge
from odradek.client.producer.statistics import ProducerStatistics
from odradek.client.producer.transactions.errors import FatalTransactionError, TransactionStateError
from odradek.client.settings import ProducerSettings
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.producer.tables import Table, TableDelivery

_alive: weakref.WeakSet[Producer[Any, Any]] = weakref.WeakSet()


class Producer(SendPath[Key, Value], Generic[Key, Value]):
    """Sends records to any Kafka. Threads may share one.

    with Producer(bootstrap_servers="localhost:9092") as producer:
        future = producer.send("orders", b"tea", key=b"customer 1")
        print(future.result(10).offset)

    Settings are Kafka's in Python case (`linger_ms`, `compression_type`, …). A record is accepted at once and
    sent together with others; its future and `on_delivery(error, metadata)` report the result.
    Callbacks run on the producer's thread: they must be quick, and may send but not wait.
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
        self: Producer[Key, bytes],
        *,
        key_serializer: Serializer[Key],
        partitioner: Partitioner | None = None,
        interceptors: Sequence[Interceptor[Key, bytes]] = (),
        **settings: Unpack[ProducerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[bytes, Value],
        *,
        value_serializer: Serializer[Value],
        partitioner: Partitioner | None = None,
        interceptors: Sequence[Interceptor[bytes, Value]] = (),
        **settings: Unpack[ProducerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[bytes, bytes],
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
        check_keywords_only("Producer", misplaced)
        self.config = producer_config(settings)
        self._preparation: Preparation[Any, Any] = Preparation(
            key_serializer, value_serializer, partitioner, interceptors
        )
        super().__init__(make_accumulator(self.config), self._preparation.is_plain)
        self._background = BackgroundLoop("producer")
        self._engine = self._background.call(self._start())
        self._single_batch_sender = self._engine.single_batch_sender
        # A record that need not wait for others, nor for earlier ones, is sent by the calling thread.
        self._accumulator.defers_waking = (
            self.config.linger_ms == 0
            and self.config.required_acks != 0
            and self.config.transactional_id is None
        )
        _alive.add(self)

    async def _start(self) -> ProducerEngine:
        loop = self._background.loop
        return ProducerEngine(self.config, self._accumulator, loop.call_soon_threadsafe)

    # Records.

    def _send_general(
        self, given: ProducerRecord[Key, Value], on_delivery: OnDelivery | None
    ) -> DeliveryFuture:
        self._check_sendable()
        record = self._preparation.intercepted(given)
        deadline = self._deadline()
        queues = self._find(record.topic, deadline)
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
                if self._accumulator.is_wake_due:
                    self._send_now()
                return future
            self._resolve_append_failure(ready, queues, deadline)

    def _find(self, topic: str, deadline: float) -> TopicQueues:
        queues = self._accumulator.topics.get(topic)
        if queues is None:
            topic_name(topic)
            left_ms = max(0, round((deadline - time.monotonic()) * 1000))
            self._background.call(self._engine.find_topic(topic, left_ms))
            queues = self._accumulator.topics[topic]
        return queues

    def _find_with(self, topic: str, count: int) -> TopicQueues:
        """A topic, of which the brokers are asked again if fewer partitions are known."""
        deadline = self._deadline()
        queues = self._find(topic, deadline)
        if count > len(queues.queues):
            left_ms = max(0, round((deadline - time.monotonic()) * 1000))
            self._background.call(self._engine.find_topic_again(topic, left_ms))
        return queues

    def _resolve_append_failure(self, ready: Ready, queues: TopicQueues, deadline: float) -> None:
        """Resolve the reason why a record was not appended, or raise it."""
        self._check_sendable()
        if ready.partition >= len(queues.queues):
            left_ms = max(0, round((deadline - time.monotonic()) * 1000))
            self._background.call(self._engine.find_partition(ready.topic, ready.partition, left_ms))
            return
        size = smallest_batch_size(ready.key, ready.value, ready.headers)
        self._wait_for_memory(size, deadline)

    def _wait_for_memory(self, size: int, deadline: float) -> None:
        problem = RecordTooLarge.check(size, self.config.max_request_size, self.config.buffer_memory)
        if problem is not None:
            raise problem
        needed = max(size, self._accumulator.batch_size)
        if not self._accumulator.wait_for_memory(needed, deadline - time.monotonic()):
            raise BufferExhausted(size, self.config.max_block_ms)

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

    def send_table(self, topic: str, table: Table) -> TableDelivery:
        """Send the rows of an Arrow, polars or pandas table, without a Python object per record.

        The columns are `value` and, if there, `key`, `headers`, `timestamp`, `partition`. Blocks like `send`.
        """
        from odradek.client.producer.tables import (  # noqa: PLC0415
            TableDelivery,
            as_arrow,
            highest_partition,
            table_batches,
        )

        self._check_sendable()
        rows = as_arrow(table)
        queues = self._find_with(topic, highest_partition(rows) + 1)
        batches = []
        for batch in table_batches(self._accumulator, queues, rows):
            while not self._accumulator.add_encoded(queues, batch):
                self._check_sendable()
                self._wait_for_memory(batch.size, self._deadline())
            batches.append(batch)
        return TableDelivery(batches)

    # Transactions.

    def init_transactions(self) -> None:
        """Register the `transactional_id`; call it once, before the first transaction.

        Producers that had the same id before are fenced, and an open transaction of theirs is aborted.
        """
        self._check_usable()
        self._background.call(self._engine.transactions.init())

    def begin_transaction(self) -> None:
        """Open a transaction; records can be sent until it is committed or aborted."""
        self._check_usable()
        self._background.call(self._engine.begin_transaction())

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        group: ConsumerGroupMetadata | str,
    ) -> None:
        """Commit offsets of a group together with the records: the offset of the next record to read.

        `group` is `consumer.group_metadata()`, so that only a present member can commit, or a group id.
        """
        self._check_usable()
        work = self._engine.transactions.send_offsets(with_metadata(offsets), as_group(group))
        self._background.call(work)

    def commit_transaction(self) -> None:
        """Deliver all records and commit. After DeadlineExceeded it may be called again.

        AbortableTransactionError: call `abort_transaction`. FatalTransactionError: close the producer.
        """
        self._check_usable()
        self._background.call(self._engine.commit_transaction())

    def abort_transaction(self) -> None:
        """Abort: readers of committed data see no record of it. After DeadlineExceeded call it again."""
        self._check_usable()
        self._background.call(self._engine.transactions.abort())

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """A transaction that is committed at the end of the block, or aborted if the block raises.

        with producer.transaction():
            producer.send("orders", b"tea")
        """
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except FatalTransactionError:
            raise
        except BaseException:
            # A commit that timed out may still succeed: it can only be repeated.
            with suppress(TransactionStateError):
                self.abort_transaction()
            raise

    def join_transaction(
        self, producer: ProducerId, sequences: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """Low level: send records in a transaction that another process began and will end.

        For writers in many processes, such as the tasks of a Spark query. `producer` is the id and the epoch
        that the other process got (`TransactionDriver.init_producer_id`). Records are numbered from
        `sequences` on, or from 0 in partitions that are not named: two processes must not write to the same
        partition at the same time, and the second continues where `transaction_sequences` of the first ended.
        `flush` before the other process commits; this producer cannot. It may join another transaction then.
        """
        self._check_usable()
        given = {topic_partition(partition): number for partition, number in (sequences or {}).items()}
        self._background.call(self._engine.join_transaction(ProducerId(*producer), given))

    def transaction_sequences(self) -> dict[TopicPartition, int]:
        """Low level: the sequence of the next record of each partition, for `join_transaction` elsewhere."""
        self._check_usable()
        return self._background.call(self._engine.sequences())

    # Flushing, counters, closing.

    def flush(self, timeout: float | None = None) -> bool:
        """Send all records now and wait until each is delivered or has failed.

        False if that takes longer than `timeout` seconds. Callbacks must not call it: they would wait for
        themselves.
        """
        self._check_usable()
        return self._background.call(self._engine.flush(timeout))

    def partitions_for(self, topic: str, at_least: int = 0) -> int:
        """How many partitions a topic has; the brokers are asked again if fewer than `at_least` are known."""
        self._check_usable()
        return len(self._find_with(topic, at_least).queues)

    def statistics(self) -> ProducerStatistics:
        """The counters of this producer."""
        accumulator = self._accumulator
        return replace(
            self._engine.statistics,
            records_sent=accumulator.records,
            buffered_bytes=accumulator.memory - accumulator.memory_left,
        )

    def close(self, timeout: float | None = None) -> None:
        """Deliver all records sent so far, within `timeout` seconds if given, and close; the rest fail.

        A second call does nothing.
        """
        _alive.discard(self)
        self._background.close(self._engine.close(timeout))

    def __repr__(self) -> str:
        return f"<Producer to {', '.join(self.config.bootstrap_servers)}>"

    def __enter__(self) -> Self:
        self._check_usable()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if self in _alive and self._accumulator.problem is None:
            _warn(f"a producer was not closed: {self!r}", ResourceWarning, source=self)

    def _abandon(self) -> None:
        self._accumulator.abandon(ClientForked("producer"))


def _after_fork() -> None:
    """Producers of the parent have no thread here; using one raises an error."""
    batch_module.after_fork()
    for producer in list(_alive):
        producer._abandon()
    _alive.clear()


os.register_at_fork(after_in_child=_after_fork)

__all__ = ["Producer", "RecordMetadata"]
