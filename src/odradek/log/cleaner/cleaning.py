"""One run over one log: build the map of its dirty part, then rewrite its segments group by group.

Cleaning(...)              the owner of the log: records what to clean, and the state of the log
build_map()                a pool's thread, may take long
clean_next_group()         a pool's thread, may take long; None when all are done
swap(group)                the owner: puts the new segment in the place of the old ones
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.log.cleaner.errors import CleaningAborted
from odradek.log.cleaner.filter.batch_filter import BatchFilter, LastRecord
from odradek.log.cleaner.filter.offset_map import OffsetMap
from odradek.log.cleaner.filter.transactions import CleanedTransactions
from odradek.log.cleaner.mapping import DirtyMapper
from odradek.log.cleaner.plan import ClosedSegment, LogState, LogToClean, group_segments
from odradek.log.cleaner.rewrite import rewrite
from odradek.log.cleaner.statistics import CleanerStatistics
from odradek.log.cleaner.throttle import CleanerThrottle
from odradek.log.errors import StorageError
from odradek.log.partition.leader_batches import max_decompressed_bytes
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.partition.reading import aborted_between
from odradek.log.segment.segment import Segment


class CleanedGroup(NamedTuple):
    """A new segment, still with the suffix .cleaned, and those whose place it takes."""

    old: Sequence[Segment]
    new: Segment


@dataclass(slots=True, eq=False, repr=False)
class Workspace:
    """The buffers of one thread, reused for its runs."""

    offset_map: OffsetMap
    throttle: CleanerThrottle
    chunk_bytes: int
    clock: Callable[[], float] = field(default=time.perf_counter)


def log_state(log: PartitionLog) -> LogState:
    """The log as the plan sees it; by its owner."""
    active = log.segments.active
    return LogState(
        [_closed(segment) for segment in log.segments if segment is not active],
        active.base_offset,
        log.log_start_offset,
        log.last_stable_offset,
        log.log_end_offset,
        log.config,
    )


def _closed(segment: Segment) -> ClosedSegment:
    return ClosedSegment(
        segment.base_offset,
        segment.size,
        segment.offset_index.file.size,
        segment.time_index.file.size,
        segment.first_timestamp_ms,
        segment.largest_timestamp_ms,
    )


class Cleaning:
    """A run. The table above says which thread may call what; any thread may call `abort`."""

    def __init__(self, log: PartitionLog, target: LogToClean, workspace: Workspace, *, now_ms: int) -> None:
        self.log = log
        self.target = target
        self.now_ms = now_ms
        self.statistics = CleanerStatistics(start_offset=target.first_dirty_offset)
        self._workspace = workspace
        self._segments = [segment for segment in log.segments if segment.base_offset < target.end_offset]
        self._truncation_count = log.truncation_count
        self._last_records = {
            entry.producer_id: LastRecord(
                entry.last_offset if entry.last_offset >= 0 else None, entry.producer_epoch
            )
            for entry in log.producers.entries.values()
        }
        self._max_decompressed_bytes = max_decompressed_bytes(log.config)
        self._groups: list[list[Segment]] = []
        self._filter: BatchFilter | None = None
        self._is_aborted = False

    @property
    def end_offset(self) -> int:
        """The log is clean up to here when all groups are swapped."""
        return self.statistics.end_offset

    @property
    def workspace(self) -> Workspace:
        """To be given back when the run is over."""
        return self._workspace

    def abort(self) -> None:
        """Make the run stop with CleaningAborted soon."""
        self._is_aborted = True

    def check_not_aborted(self) -> None:
        """CleaningAborted after `abort`."""
        if self._is_aborted:
            raise CleaningAborted(f"{self.log.partition}: cleaning was aborted")

    # In a pool's thread

    def build_map(self) -> None:
        """Store the last offset of every key in the dirty part, until the map is full; blocks."""
        started = self._workspace.clock()
        target, offset_map = self.target, self._workspace.offset_map
        offset_map.clear(max_keys=target.end_offset - target.first_dirty_offset)
        mapper = DirtyMapper(
            offset_map,
            self._transactions_from(target.first_dirty_offset),
            target.first_dirty_offset,
            self.statistics,
            chunk_bytes=self._workspace.chunk_bytes,
            max_decompressed_bytes=self._max_decompressed_bytes,
            pass_bytes=self._pass_bytes,
        )
        mapper.map(self._segments, target.end_offset)
        statistics = self.statistics
        statistics.end_offset = offset_map.latest_offset + 1
        statistics.map_entries = len(offset_map)
        statistics.map_utilization = offset_map.utilization
        statistics.map_seconds = self._workspace.clock() - started
        self._plan_groups()

    def _plan_groups(self) -> None:
        segments = [segment for segment in self._segments if segment.base_offset < self.end_offset]
        following = self._segments[len(segments) :]
        groups = group_segments(
            [_closed(segment) for segment in segments],
            max_segment_bytes=self.log.config.max_segment_bytes,
            max_index_bytes=self.log.config.segment_index_bytes,
            end_offset=following[0].base_offset if following else self.target.end_offset,
        )
        self._groups = [[segments[place] for place in group] for group in groups]
        self._filter = BatchFilter(
            self._workspace.offset_map,
            self._transactions_from(self._segments[0].base_offset),
            self._last_records,
            now_ms=self.now_ms,
            delete_retention_ms=self.log.config.delete_retention_ms,
            max_decompressed_bytes=self._max_decompressed_bytes,
            statistics=self.statistics,
        )

    def clean_next_group(self) -> CleanedGroup | None:
        """Rewrite the next segments; None if there are none left. Blocks."""
        if not self._groups or self._filter is None:
            return None
        started = self._workspace.clock()
        old = self._groups.pop(0)
        new = rewrite(
            old,
            self._filter,
            self.statistics,
            chunk_bytes=self._workspace.chunk_bytes,
            pass_bytes=self._pass_bytes,
        )
        self.statistics.rewrite_seconds += self._workspace.clock() - started
        return CleanedGroup(old, new)

    def _pass_bytes(self, count: int) -> None:
        """Called with the bytes read or written; throttles or aborts the run."""
        self.check_not_aborted()
        self._workspace.throttle.pass_bytes(count)

    def _transactions_from(self, offset: int) -> CleanedTransactions:
        """To be followed from `offset` to the end of what is cleaned; reads the indexes."""
        return CleanedTransactions(aborted_between(self.log.segments, offset, self.target.end_offset))

    # By the owner of the log

    def begin_swap(self, group: CleanedGroup, *, now_ms: int) -> Iterator[None]:
        """Swap a new segment in; the remaining steps are those of the log's `begin_replacement`.

        CleaningAborted if the log has changed. A segment that cannot be used is removed.
        """
        if not self._is_unchanged(group.old):
            self.discard(group)
            raise CleaningAborted(f"{self.log.partition}: the log was truncated while it was cleaned")
        try:
            return self.log.begin_replacement(group.old, [group.new], now_ms=now_ms)
        except StorageError:
            if group.new not in list(self.log.segments):
                with contextlib.suppress(OSError):  # the disk has failed already
                    self.discard(group)
            raise

    def sync_directory(self) -> None:
        """Between two steps of a swap, in a pool's thread: make the last one survive a power cut. Blocks."""
        started = self._workspace.clock()
        self.log.directory.files.sync_directory(self.log.directory.path)
        self.statistics.swap_seconds += self._workspace.clock() - started

    def _is_unchanged(self, segments: Sequence[Segment]) -> bool:
        if self._is_aborted or self.log.truncation_count != self._truncation_count:
            return False
        present = {id(segment) for segment in self.log.segments}
        return all(id(segment) in present for segment in segments)

    def discard(self, group: CleanedGroup) -> None:
        """Remove a new segment that will not be used."""
        group.new.close()
        for file in group.new.files():
            self.log.directory.files.remove(file.path)
