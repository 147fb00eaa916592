"""The consumer for code on a loop: the same fetcher and group, on the caller's own loop."""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack, overload

from odradek.client.arguments import (
    as_offset,
    seconds,
    topic_name,
    topic_names,
    topic_partition,
    topic_partitions,
    with_metadata,
)
from odradek.client.committed_offsets import ConsumerGroupMetadata, OffsetAndMetadata
from odradek.client.config import check_function, check_keywords_only
from odradek.client.consumer.config import consumer_config
from odradek.client.consumer.consumer import (
    CLOSE_TIMEOUT_S,
    Deserializer,
    Key,
    OnCommit,
    Value,
    checked_times,
    complete_call,
    timeout_in_ms,
)
from odradek.client.consumer.consumer_record import ConsumerRecord
from odradek.client.consumer.engine import ConsumerEngine
from odradek.client.consumer.errors import NotSubscribed
from odradek.client.consumer.fetch.fetch_buffer import FetchBuffer
from odradek.client.consumer.fetch.offset_lookup import OffsetAndTimestamp
from odradek.client.consumer.interceptors import ConsumerInterceptor, Interceptors
from odradek.client.consumer.poll_path import LONGEST_SLICE_S
from odradek.client.consumer.positions import EARLIEST, LATEST
from odradek.client.consumer.record_reader import AutoCommit, RecordReader
from odradek.client.consumer.statistics import ConsumerStatistics
from odradek.client.consumer.subscription import RebalanceListener
from odradek.client.errors import ClientClosed
from odradek.client.settings import ConsumerSettings
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


class AsyncConsumer(Generic[Key, Value]):
    """Reads records of any Kafka from a running loop. For one task at a time.

    async with AsyncConsumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            print(record.partition, record.offset, record.value)

    A listener's methods may be coroutine functions.
    """

    @overload
    def __init__(
        self,
        *,
        key_deserializer: Deserializer[Key],
        value_deserializer: Deserializer[Value],
        interceptors: Sequence[ConsumerInterceptor[Key, Value]] = (),
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncConsumer[Key, bytes],
        *,
        key_deserializer: Deserializer[Key],
        interceptors: Sequence[ConsumerInterceptor[Key, bytes]] = (),
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncConsumer[bytes, Value],
        *,
        value_deserializer: Deserializer[Value],
        interceptors: Sequence[ConsumerInterceptor[bytes, Value]] = (),
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncConsumer[bytes, bytes],
        *,
        interceptors: Sequence[ConsumerInterceptor[bytes, bytes]] = (),
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    def __init__(
        self,
        *misplaced: object,
        key_deserializer: Deserializer[Any] | None = None,
        value_deserializer: Deserializer[Any] | None = None,
        interceptors: Sequence[ConsumerInterceptor[Any, Any]] = (),
        **settings: Any,
    ) -> None:
        check_keywords_only("AsyncConsumer", misplaced)
        check_function("key_deserializer", key_deserializer)
        check_function("value_deserializer", value_deserializer)
        self.config = consumer_config(settings)
        self._has_changed = asyncio.Event()
        self._fetch_buffer = FetchBuffer()
        self._fetch_buffer.on_change = self._has_changed.set
        self._interceptors = Interceptors(interceptors)
        self._reader = RecordReader(
            self._fetch_buffer, key_deserializer, value_deserializer, self._interceptors.consumed
        )
        self._auto_commit = (
            AutoCommit(self.config.auto_commit_interval_ms) if self.config.enable_auto_commit else None
        )
        self._made: ConsumerEngine | None = None
        self._is_closed = False

    @property
    def _engine(self) -> ConsumerEngine:
        """Created at first use, when a loop is running."""
        if self._is_closed:
            raise ClientClosed("consumer")
        if self._made is None:
            self._made = ConsumerEngine(
                self.config, self._fetch_buffer, self._reader.release, self._interceptors.committed
            )
        return self._made

    def _processed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return self._reader.processed(self._made.states) if self._made is not None else {}

    # What to read.

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Share these topics, and those whose whole name matches, with the group; replaces earlier ones."""
        self._engine.subscribe(topic_names(topics), pattern, listener)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without sharing; replaces earlier ones."""
        chosen = topic_partitions(partitions)
        self._reader.forget(set(self._engine.states) ^ set(chosen))
        self._engine.assign(chosen)

    async def unsubscribe(self) -> None:
        """Read nothing; leave the group."""
        await self._engine.unsubscribe()
        self._reader.leftover.clear()

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read now."""
        return set(self._engine.states)

    def subscription(self) -> set[str]:
        """The subscribed topics."""
        return self._engine.subscription()

    # Reading.

    async def poll(
        self, timeout: float = 0.0, *, max_records: int | None = None
    ) -> list[ConsumerRecord[Key, Value]]:
        """Records that came next, at most `max_poll_records`; waits up to `timeout` seconds for the first."""
        limit = self.config.max_poll_records if max_records is None else max_records
        return await self._poll(timeout, lambda: self._reader.next_records(limit))

    async def poll_table(self, timeout: float = 0.0, *, max_records: int = 100_000) -> pa.Table:
        """Like `poll`, as an Arrow table; see `Consumer.poll_table`."""
        from odradek.client.consumer.tables import new_sink, to_table  # noqa: PLC0415

        if self._reader.leftover:
            raise NotSubscribed("an iteration over this consumer holds records; poll() gives them back")
        return to_table(await self._poll(timeout, lambda: self._reader.next_columns(max_records, new_sink)))

    async def _poll(self, timeout: float, take: Callable[[], list[Any]]) -> list[Any]:
        engine = self._engine
        if not engine.states and not engine.is_subscribed:
            raise NotSubscribed("nothing to poll: subscribe() or assign() first")
        self._reader.statistics.polls += 1
        now = time.monotonic()
        deadline = now + seconds(timeout)
        if self._auto_commit is not None and self._auto_commit.is_due(now * 1000):
            engine.commit_soon(self._auto_commit.changed_offsets(self._processed()), None)
        while True:
            engine.polled_ms = now * 1000
            self._has_changed.clear()
            await self._handle_demands()
            taken = take()
            if self._reader.has_drained:
                self._reader.has_drained = False
                engine.pump()
            now = time.monotonic()
            if taken or now >= deadline:
                return taken
            try:
                async with asyncio.timeout(min(deadline - now, LONGEST_SLICE_S)):
                    await self._has_changed.wait()
            except TimeoutError:
                now = time.monotonic()

    async def _handle_demands(self) -> None:
        """Run the functions that wait for a poll, and raise a pending error."""
        fetch_buffer = self._fetch_buffer
        while fetch_buffer.calls:
            call = fetch_buffer.calls.popleft()
            try:
                response = call.function()
                if inspect.isawaitable(response):
                    response = await response
            except BaseException as error:
                complete_call(call.done, None, error)
                raise
            complete_call(call.done, response, None)
            await asyncio.sleep(0)  # often the next call follows at once
        problem = fetch_buffer.problem()
        if problem is not None:
            raise problem.with_traceback(None)

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[Key, Value]]:
        """Records one by one, forever; ends when the consumer is closed."""
        leftover = self._reader.leftover
        while not self._is_closed:
            leftover.extend(await self.poll(LONGEST_SLICE_S))
            while leftover:
                yield leftover.popleft()

    # Where to read.

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue from an offset; a leader epoch, as `committed` returns it, is checked first."""
        place = as_offset(offset)
        self._engine.seek(topic_partition(partition), place.offset, place.leader_epoch)
        self._reader.forget({topic_partition(partition)})

    async def seek_to_beginning(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Continue from the first record; of all partitions if none are given."""
        await self._seek_to(partitions, EARLIEST)

    async def seek_to_end(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Continue after the last record; in all partitions if none are given."""
        await self._seek_to(partitions, LATEST)

    async def _seek_to(self, partitions: Collection[TopicPartition], time_ms: int) -> None:
        chosen = topic_partitions(partitions) or sorted(self._engine.states)
        await self._engine.seek_to_end_of(chosen, time_ms)
        self._reader.forget(set(chosen))

    async def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset of the next record to return."""
        timeout_ms = timeout_in_ms(timeout)
        engine, partition = self._engine, topic_partition(partition)
        await engine.position(
            partition, self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        )
        position = self._reader.position(engine.state(partition))
        assert position is not None
        return position

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these until `resume`; they stay assigned."""
        self._engine.pause(topic_partitions(partitions), is_paused=True)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of paused partitions again."""
        self._engine.pause(topic_partitions(partitions), is_paused=False)

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return {partition for partition, state in self._engine.states.items() if state.is_paused}

    def lag(self, partition: TopicPartition) -> int | None:
        """Records between the position and the end, as of the last fetch; None if nothing is known yet."""
        state = self._engine.states.get(topic_partition(partition))
        return state.lag if state is not None else None

    # Offsets.

    async def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        """Commit for the group: the positions, or these offsets; returns when that is done."""
        await self._engine.commit(self._processed() if offsets is None else with_metadata(offsets))

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """Commit in the background; `on_commit(error, offsets)` is called during a later poll."""
        self._engine.commit_soon(self._processed() if offsets is None else with_metadata(offsets), on_commit)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offsets of the group."""
        wanted = topic_partitions(partitions)
        found = await self._engine.committed(wanted, timeout_in_ms(timeout))
        return {partition: found.get(partition) for partition in wanted}

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after a time in ms; None if there is none."""
        found = await self._engine.list_offsets(checked_times(times), timeout_in_ms(timeout))
        return {partition: one if one.offset >= 0 else None for partition, one in found.items()}

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return await self._ends(partitions, EARLIEST, timeout)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record that may be read, of each partition."""
        return await self._ends(partitions, LATEST, timeout)

    async def _ends(
        self, partitions: Iterable[TopicPartition], time_ms: int, timeout: float | None
    ) -> dict[TopicPartition, int]:
        times = dict.fromkeys(topic_partitions(partitions), time_ms)
        found = await self._engine.list_offsets(times, timeout_in_ms(timeout))
        return {partition: one.offset for partition, one in found.items()}

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The group and this member of it, for `AsyncProducer.send_offsets_to_transaction`."""
        return self._engine.group_metadata()

    # Counters, closing.

    async def partitions_for(self, topic: str) -> int:
        """How many partitions a topic has."""
        return await self._engine.partitions_for(topic_name(topic))

    def statistics(self) -> ConsumerStatistics:
        """The counters of this consumer."""
        return replace(self._reader.statistics, buffered_bytes=self._reader.buffered_bytes())

    async def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Commit what was returned (with auto commit), leave the group, close. A second call does nothing."""
        if not self._is_closed and self._made is not None:
            await self._made.close(self._processed(), timeout)
        self._is_closed = True

    def __repr__(self) -> str:
        group = f" in group {self.config.group_id}" if self.config.group_id is not None else ""
        return f"<AsyncConsumer of {', '.join(self.config.bootstrap_servers)}{group}>"

    async def __aenter__(self) -> Self:
        if self._is_closed:
            raise ClientClosed("consumer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
