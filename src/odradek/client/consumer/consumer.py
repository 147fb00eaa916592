"""The consumer for code without a loop: a background thread fetches ahead, `poll` returns records."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, Unpack, overload

from odradek.client.arguments import (
    as_offset,
    topic_name,
    topic_names,
    topic_partition,
    topic_partitions,
    with_metadata,
)
from odradek.client.committed_offsets import ConsumerGroupMetadata, OffsetAndMetadata
from odradek.client.config import check_function, check_keywords_only
from odradek.client.consumer.config import consumer_config
from odradek.client.consumer.consumer_record import ConsumerRecord
from odradek.client.consumer.engine import ConsumerEngine, Offsets
from odradek.client.consumer.errors import NotSubscribed
from odradek.client.consumer.fetch.fetch_buffer import FetchBuffer
from odradek.client.consumer.fetch.offset_lookup import OffsetAndTimestamp
from odradek.client.consumer.interceptors import ConsumerInterceptor, Interceptors
from odradek.client.consumer.poll_path import LONGEST_SLICE_S, PollPath
from odradek.client.consumer.positions import EARLIEST, LATEST
from odradek.client.consumer.record_reader import AutoCommit, RecordReader
from odradek.client.consumer.statistics import ConsumerStatistics
from odradek.client.consumer.subscription import RebalanceListener
from odradek.client.errors import ClientClosed
from odradek.client.network.background_loop import BackgroundLoop
from odradek.client.settings import ConsumerSettings
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

Key = TypeVar("Key")
Value = TypeVar("Value")
Plain_co = TypeVar("Plain_co", covariant=True)

OnCommit = Callable[[BaseException | None, Offsets], object]

CLOSE_TIMEOUT_S = 30.0


class Deserializer(Protocol[Plain_co]):
    """Turns the bytes of a key or a value into an object; not called for None, which stays None."""

    def __call__(self, content: bytes, /) -> Plain_co:
        """The object."""


class Consumer(PollPath[Key, Value]):
    """Reads records of any Kafka. For one thread at a time.

    with Consumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
        consumer.subscribe(["orders"])
        for record in consumer:
            print(record.partition, record.offset, record.value)

    Settings are Kafka's in Python case (`auto_offset_reset`, `max_poll_records`, …).
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
        self: Consumer[Key, bytes],
        *,
        key_deserializer: Deserializer[Key],
        interceptors: Sequence[ConsumerInterceptor[Key, bytes]] = (),
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[bytes, Value],
        *,
        value_deserializer: Deserializer[Value],
        interceptors: Sequence[ConsumerInterceptor[bytes, Value]] = (),
        **settings: Unpack[ConsumerSettings],
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[bytes, bytes],
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
        check_keywords_only("Consumer", misplaced)
        check_function("key_deserializer", key_deserializer)
        check_function("value_deserializer", value_deserializer)
        self.config = consumer_config(settings)
        self._interceptors = Interceptors(interceptors)
        fetch_buffer = FetchBuffer()
        reader = RecordReader(fetch_buffer, key_deserializer, value_deserializer, self._interceptors.consumed)
        super().__init__(fetch_buffer, reader, self.config.max_poll_records)
        self._auto_commit = (
            AutoCommit(self.config.auto_commit_interval_ms) if self.config.enable_auto_commit else None
        )
        self._background = BackgroundLoop("consumer")
        self._engine = self._background.call(self._start())
        self._is_open = True

    async def _start(self) -> ConsumerEngine:
        return ConsumerEngine(
            self.config, self._fetch_buffer, self._reader.release, self._interceptors.committed
        )

    def _processed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return self._reader.processed(dict(self._engine.states))

    # What to read.

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Share these topics, and those whose whole name matches, with the group; replaces earlier ones."""
        topics = topic_names(topics)
        with self._in_use():
            if not topics and pattern is None:
                self.unsubscribe()
                return
            self._on_loop(lambda: self._engine.subscribe(topics, pattern, listener))

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without sharing; replaces earlier ones."""
        chosen = topic_partitions(partitions)
        with self._in_use():
            self._on_loop(lambda: self._engine.assign(chosen))
            self._reader.forget(set(self._engine.states) ^ set(chosen))

    def assign_range(self, partition: TopicPartition, start: int, end: int) -> None:
        """Read exactly this partition from `start` on; fetch nothing more once `end` is reached.

        The last records polled may be behind `end`. `position` reports when everything before it was polled,
        also where the log has no records.
        """
        chosen = topic_partition(partition)
        with self._in_use():
            self._on_loop(lambda: self._engine.assign_range(chosen, start, end))
            self._reader.leftover.clear()

    def unsubscribe(self) -> None:
        """Read nothing; leave the group."""
        with self._in_use():
            self._background.call(self._engine.unsubscribe())
            self._reader.leftover.clear()

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read now."""
        return set(self._engine.states)

    def subscription(self) -> set[str]:
        """The subscribed topics."""
        with self._in_use():
            found: set[str] = self._on_loop(self._engine.subscription)
            return found

    # Reading.

    def poll_table(self, timeout: float = 0.0, *, max_records: int = 100_000) -> pa.Table:
        """Like `poll`, as an Arrow table of about `max_records` rows; no Python object is made per record.

        Deserializers are not used. An empty table if there are no records.
        """
        from odradek.client.consumer.tables import new_sink, to_table  # noqa: PLC0415

        if self._reader.leftover:
            raise NotSubscribed("an iteration over this consumer holds records; poll() gives them back")
        taken = self._poll(timeout, 0, lambda: self._reader.next_columns(max_records, new_sink))
        return to_table(taken or [])

    def _handle_demands(self) -> None:
        """Run the functions that wait for a poll, and raise a pending error."""
        fetch_buffer = self._fetch_buffer
        while fetch_buffer.calls:
            call = fetch_buffer.calls.popleft()
            try:
                response = call.function()
            except BaseException as error:
                self._background.call_soon(complete_call, call.done, None, error)
                raise
            self._background.call_soon(complete_call, call.done, response, None)
            # The caller continues in the background; often the next call follows at once.
            self._fetch_buffer.wait(0.01)
        problem = fetch_buffer.problem()
        if problem is not None:
            raise problem.with_traceback(None)

    def _fetch_more(self) -> None:
        self._reader.has_drained = False
        self._background.loop.call_soon_threadsafe(self._engine.pump)

    def _commit_if_due(self, now_ms: float) -> None:
        if self._auto_commit is not None and self._auto_commit.is_due(now_ms):
            offsets = self._auto_commit.changed_offsets(self._processed())
            if offsets:
                self._background.call_soon(self._engine.commit_soon, offsets, None)

    def __iter__(self) -> Iterator[ConsumerRecord[Key, Value]]:
        """Records one by one, forever; ends when the consumer is closed."""
        leftover = self._reader.leftover
        while self._is_open:
            leftover.extend(self.poll(LONGEST_SLICE_S))
            while leftover:
                yield leftover.popleft()

    # Where to read.

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue from an offset; a leader epoch, as `committed` returns it, is checked first."""
        place = as_offset(offset)
        with self._in_use():
            self._on_loop(
                lambda: self._engine.seek(topic_partition(partition), place.offset, place.leader_epoch)
            )
            self._reader.forget({topic_partition(partition)})

    def seek_to_beginning(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Continue from the first record; of all partitions if none are given."""
        self._seek_to(partitions, EARLIEST)

    def seek_to_end(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Continue after the last record; in all partitions if none are given."""
        self._seek_to(partitions, LATEST)

    def _seek_to(self, partitions: Collection[TopicPartition], time_ms: int) -> None:
        with self._in_use():
            chosen = topic_partitions(partitions) or sorted(self._engine.states)
            self._background.call(self._engine.seek_to_end_of(chosen, time_ms))
            self._reader.forget(set(chosen))

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset of the next record to return."""
        timeout_ms = self.config.default_api_timeout_ms if timeout is None else round(timeout * 1000)
        with self._in_use():
            partition = topic_partition(partition)
            self._background.call(self._engine.position(partition, timeout_ms))
            position = self._reader.position(self._engine.states[partition])
            assert position is not None
            return position

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these until `resume`; they stay assigned."""
        chosen = topic_partitions(partitions)
        with self._in_use():
            self._on_loop(lambda: self._engine.pause(chosen, is_paused=True))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of paused partitions again."""
        chosen = topic_partitions(partitions)
        with self._in_use():
            self._on_loop(lambda: self._engine.pause(chosen, is_paused=False))

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return {partition for partition, state in list(self._engine.states.items()) if state.is_paused}

    def lag(self, partition: TopicPartition) -> int | None:
        """Records between the position and the end, as of the last fetch; None if nothing is known yet."""
        state = self._engine.states.get(topic_partition(partition))
        return state.lag if state is not None else None

    # Offsets.

    def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        """Commit for the group: the positions, or these offsets; returns when that is done."""
        with self._in_use():
            given = self._processed() if offsets is None else with_metadata(offsets)
            self._background.call(self._engine.commit(given))

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """Commit in the background; `on_commit(error, offsets)` is called during a later poll."""
        with self._in_use():
            given = self._processed() if offsets is None else with_metadata(offsets)
            self._on_loop(lambda: self._engine.commit_soon(given, on_commit))

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offsets of the group."""
        wanted = topic_partitions(partitions)
        with self._in_use():
            found = self._background.call(self._engine.committed(wanted, timeout_in_ms(timeout)))
        return {partition: found.get(partition) for partition in wanted}

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after a time in ms; None if there is none."""
        with self._in_use():
            found = self._background.call(
                self._engine.list_offsets(checked_times(times), timeout_in_ms(timeout))
            )
        return {partition: one if one.offset >= 0 else None for partition, one in found.items()}

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return self._ends(partitions, EARLIEST, timeout)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record that may be read, of each partition."""
        return self._ends(partitions, LATEST, timeout)

    def _ends(
        self, partitions: Iterable[TopicPartition], time_ms: int, timeout: float | None
    ) -> dict[TopicPartition, int]:
        times = dict.fromkeys(topic_partitions(partitions), time_ms)
        with self._in_use():
            found = self._background.call(self._engine.list_offsets(times, timeout_in_ms(timeout)))
        return {partition: one.offset for partition, one in found.items()}

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The group and this member of it, for `Producer.send_offsets_to_transaction`."""
        return self._engine.group_metadata()

    # Counters, closing.

    def partitions_for(self, topic: str) -> int:
        """How many partitions a topic has."""
        with self._in_use():
            return self._background.call(self._engine.partitions_for(topic_name(topic)))

    def statistics(self) -> ConsumerStatistics:
        """The counters of this consumer."""
        return replace(self._reader.statistics, buffered_bytes=self._reader.buffered_bytes())

    def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Commit what was returned (with auto commit), leave the group, close. A second call does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        self._background.close(self._engine.close(self._processed(), timeout))

    def __repr__(self) -> str:
        group = f" in group {self.config.group_id}" if self.config.group_id is not None else ""
        return f"<Consumer of {', '.join(self.config.bootstrap_servers)}{group}>"

    def __enter__(self) -> Self:
        if not self._is_open:
            raise ClientClosed("consumer")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if getattr(self, "_is_open", False):  # without attributes if `__init__` raised, when interpreted
            _warn(f"a consumer was not closed: {self!r}", ResourceWarning, source=self)

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """One thread at a time, while the consumer can be used."""
        self._begin_to_use()
        try:
            yield
        finally:
            self._using.release()

    def _on_loop(self, act: Callable[[], Any]) -> Any:
        async def acting() -> Any:
            return act()

        return self._background.call(acting())


def complete_call(done: Any, response: Any, error: BaseException | None) -> None:
    """Complete the future of a call made during a poll."""
    if not done.done():
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(response)


def checked_times(times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Times to look for, in milliseconds since 1970."""
    if not isinstance(times, Mapping):
        raise TypeError(f"times are {{TopicPartition(topic, number): milliseconds}}, not {times!r}")
    for time_ms in times.values():
        if type(time_ms) is not int:
            raise TypeError(f"a time is an int, in milliseconds since 1970, not {time_ms!r}")
    return {topic_partition(partition): time_ms for partition, time_ms in times.items()}


def timeout_in_ms(timeout: float | None) -> int | None:
    """Seconds as milliseconds; None stays the default."""
    return None if timeout is None else round(timeout * 1000)
