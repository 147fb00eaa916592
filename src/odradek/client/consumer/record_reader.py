# cython: annotation_typing=False
"""Returns fetched records, and keeps the user's position. Used by the one thread that polls.

Compiled by Cython (record_reader.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any

from odradek.client.committed_offsets import OffsetAndMetadata
from odradek.client.consumer.consumer_record import ConsumerRecord
from odradek.client.consumer.errors import CorruptRecords, DeserializationFailed
from odradek.client.consumer.fetch.fetch_buffer import FetchBuffer
from odradek.client.consumer.fetch.fetched import Fetched
from odradek.client.consumer.positions import MOST_BUFFERED, PartitionPosition
from odradek.client.consumer.statistics import ConsumerStatistics
from odradek.common.ids import TopicPartition
from odradek.records.kernels.column_sinks import RecordsSink

States = Mapping[TopicPartition, PartitionPosition]
Intercept = Callable[[list[ConsumerRecord[Any, Any]]], list[ConsumerRecord[Any, Any]]]


class RecordReader:
    """Reads from the fetch buffer for the user.

    `leftover` has records that an iteration has read and not returned to the user yet: they count as unread.
    """

    def __init__(
        self, fetch_buffer: FetchBuffer, key_deserializer: Any, value_deserializer: Any, intercept: Intercept
    ) -> None:
        self.fetch_buffer = fetch_buffer
        self._intercept = intercept
        self.leftover: deque[ConsumerRecord[Any, Any]] = deque()
        self.statistics = ConsumerStatistics()
        self.has_drained = False
        """Whether data was used up, so that more should be fetched."""
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._held: list[Fetched] = []

    def next_records(self, limit: int) -> list[ConsumerRecord[Any, Any]]:
        """Up to `limit` records, in the order of each partition."""
        records: list[ConsumerRecord[Any, Any]] = []
        while self.leftover and len(records) < limit:
            records.append(self.leftover.popleft())
        seen = len(records)
        while len(records) < limit and (fetched := self._next_fetched()) is not None:
            before = len(records)
            try:
                fetched.append_records(
                    limit - before, self._key_deserializer, self._value_deserializer, records
                )
            except CorruptRecords:
                if not records:
                    raise
            except Exception as error:
                if not records:
                    raise DeserializationFailed(
                        fetched.state.topic_partition, fetched.offset, error
                    ) from error
            self._advance(fetched)
            if len(records) == before and not fetched.is_empty:
                break  # an error, which the next call raises
        self.statistics.records_returned += len(records) - seen
        return records[:seen] + self._intercept(records[seen:]) if seen else self._intercept(records)

    def next_columns(
        self, limit: int, new_sink: Callable[[], RecordsSink]
    ) -> list[tuple[PartitionPosition, RecordsSink]]:
        """Whole batches of about `limit` records, grouped as they were fetched."""
        taken: list[tuple[PartitionPosition, RecordsSink]] = []
        count = 0
        while count < limit and (fetched := self._next_fetched()) is not None:
            sink = new_sink()
            try:
                fetched.append_columns(limit - count, sink)
            except CorruptRecords:
                if not count:
                    raise
                break  # the next call raises it
            if len(sink):
                taken.append((fetched.state, sink))
                count += len(sink)
            self._advance(fetched)
        self.statistics.records_returned += count
        return taken

    def _next_fetched(self) -> Fetched | None:
        """The data to continue with: what was fetched for another position, or is paused, is skipped."""
        if self._held:
            still_held = [fetched for fetched in self._held if fetched.state.is_held]
            if len(still_held) < len(self._held):
                freed = [fetched for fetched in self._held if not fetched.state.is_held]
                self.fetch_buffer.fetched.extendleft(reversed(freed))
                self._held = still_held
        queue = self.fetch_buffer.fetched
        while queue:
            fetched = queue[0]
            if fetched.generation != fetched.state.generation:
                queue.popleft()
            elif fetched.state.is_held:
                self._held.append(queue.popleft())
            else:
                return fetched
        return None

    def _advance(self, fetched: Fetched) -> None:
        state = fetched.state
        if fetched.generation == state.generation:
            state.position = fetched.offset
            state.leader_epoch = fetched.leader_epoch
        if fetched.is_empty:
            self.fetch_buffer.fetched.popleft()
            state.buffered -= 1
            # One less than too many for more: the fetcher may have stopped. Below that it continues by
            # itself, and need not be woken. (Looked at after the change: it may add one at any time.)
            if state.buffered >= MOST_BUFFERED - 1:
                self.has_drained = True
            self.statistics.fetches += 1
            self.statistics.bytes_fetched += fetched.size

    def position(self, state: PartitionPosition) -> int | None:
        """The offset of the next record that the user gets."""
        for record in self.leftover:
            if record.partition == state.partition and record.topic == state.topic:
                return record.offset
        return state.position

    def processed(self, states: States) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offset of the next record of each partition: all before it was given to the user."""
        offsets = {
            partition: OffsetAndMetadata(state.position, "", state.leader_epoch)
            for partition, state in states.items()
            if state.position is not None
        }
        for record in reversed(self.leftover):
            partition = TopicPartition(record.topic, record.partition)
            if partition in offsets:
                offsets[partition] = OffsetAndMetadata(record.offset, "", record.leader_epoch)
        return offsets

    def release(
        self, states: States, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return no more records of these partitions; returns the final positions in them."""
        offsets = self.processed(states)
        for partition in partitions:
            state = states.get(partition)
            if state is not None:
                state.is_leaving = True
                if partition in offsets:
                    state.position = offsets[partition].offset
        self.forget(set(partitions))
        return {partition: offsets[partition] for partition in partitions if partition in offsets}

    def forget(self, partitions: set[TopicPartition]) -> None:
        """Drop leftover records of partitions that are read from another position, or not at all."""
        kept = [one for one in self.leftover if TopicPartition(one.topic, one.partition) not in partitions]
        self.leftover.clear()
        self.leftover.extend(kept)

    def buffered_bytes(self) -> int:
        """The number of buffered bytes."""
        return sum(fetched.size for fetched in [*self.fetch_buffer.fetched, *self._held])


class AutoCommit:
    """The timer of automatic commits, which commit what earlier polls returned."""

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        self._due_ms = time.monotonic() * 1000 + interval_ms
        self._last: dict[TopicPartition, OffsetAndMetadata] = {}

    def is_due(self, now_ms: float) -> bool:
        """Whether the interval is over; if so, starts the next one."""
        if now_ms < self._due_ms:
            return False
        self._due_ms = now_ms + self._interval_ms
        return True

    def changed_offsets(
        self, offsets: dict[TopicPartition, OffsetAndMetadata]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Those offsets that were not committed the last time."""
        changed = {partition: one for partition, one in offsets.items() if self._last.get(partition) != one}
        self._last = offsets
        return changed
