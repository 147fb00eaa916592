"""Which log to clean, which part of it, and which segments to merge. Pure: values in, values out.

    log start           first dirty offset          end offset
        |                       |                       |
    ----+----- clean bytes -----+----- dirty bytes -----+----- must not be touched yet -----

Below the first dirty offset every key occurs once, thanks to earlier runs. The end offset is where the
first of these begins: the active segment, the segment that holds the last stable offset, one that is too
young.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from odradek.common.config import LONG_MAX
from odradek.log.config import LogConfig
from odradek.log.segment.roll import MAX_RELATIVE_OFFSET


class ClosedSegment(NamedTuple):
    """A closed segment, as the plan needs it."""

    base_offset: int
    size: int
    offset_index_bytes: int
    time_index_bytes: int
    first_timestamp_ms: Callable[[], int]  # a function, because it may have to read the file
    largest_timestamp_ms: Callable[[], int]


class LogState(NamedTuple):
    """A log, as the plan needs it: its closed segments, oldest first, and its offsets."""

    closed_segments: Sequence[ClosedSegment]
    active_base_offset: int
    log_start_offset: int
    last_stable_offset: int
    log_end_offset: int
    config: LogConfig


class LogToClean(NamedTuple):
    """The dirty part of a log."""

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool  # `max.compaction.lag.ms` has passed for some record

    @property
    def dirty_ratio(self) -> float:
        """Share of the cleanable bytes that are dirty."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


Named = TypeVar("Named")


def first_dirty_offset(state: LogState, checkpoint: int | None) -> int:
    """Where the last run ended; the log start if there was none, or if the checkpoint is not valid."""
    if checkpoint is None or not state.log_start_offset <= checkpoint <= state.log_end_offset:
        return state.log_start_offset
    return checkpoint


def log_to_clean(state: LogState, checkpoint: int | None, now_ms: int) -> LogToClean:
    """The part to clean; empty if the end offset is the first dirty offset."""
    start = first_dirty_offset(state, checkpoint)
    end = max(start, _first_uncleanable_offset(state, start, now_ms))
    segments = [segment for segment in state.closed_segments if segment.base_offset < end]
    dirty = _from_offset(segments, start) if end > start else []
    dirty_bytes = sum(segment.size for segment in dirty)
    return LogToClean(
        start,
        end,
        sum(segment.size for segment in segments) - dirty_bytes,
        dirty_bytes,
        _is_overdue(state, start, now_ms),
    )


def _from_offset(segments: Sequence[ClosedSegment], offset: int) -> Sequence[ClosedSegment]:
    """The segment that would hold `offset`, and all younger ones."""
    first = sum(1 for segment in segments if segment.base_offset <= offset) - 1
    return segments[max(first, 0) :]


def _first_uncleanable_offset(state: LogState, start: int, now_ms: int) -> int:
    """Always the beginning of a segment, so that only whole ones are cleaned."""
    end = min(state.active_base_offset, state.last_stable_offset)
    if state.config.min_compaction_lag_ms > 0:
        youngest_ms = now_ms - state.config.min_compaction_lag_ms
        for segment in _from_offset(state.closed_segments, start):
            if segment.base_offset >= end:
                break
            if segment.largest_timestamp_ms() > youngest_ms:
                end = segment.base_offset
    bases = [*(segment.base_offset for segment in state.closed_segments), state.active_base_offset]
    return max((base for base in bases if base <= end), default=state.log_start_offset)


def _is_overdue(state: LogState, start: int, now_ms: int) -> bool:
    if state.config.max_compaction_lag_ms == LONG_MAX:
        return False
    latest_ms = now_ms - state.config.max_compaction_lag_ms
    dirty = _from_offset(state.closed_segments, start)
    return any(0 < segment.first_timestamp_ms() < latest_ms for segment in dirty)


def wants_cleaning(target: LogToClean, min_cleanable_dirty_ratio: float) -> bool:
    """Whether enough is dirty, or some record for too long."""
    if target.dirty_bytes == 0:
        return False
    return target.is_overdue or target.dirty_ratio > min_cleanable_dirty_ratio


def dirtiest(targets: Iterable[tuple[Named, LogToClean]]) -> tuple[Named, LogToClean] | None:
    """The log with the greatest share of dirty bytes; the first of equal ones."""
    return max(targets, key=lambda target: target[1].dirty_ratio, default=None)


def group_segments(
    segments: Sequence[ClosedSegment], *, max_segment_bytes: int, max_index_bytes: int, end_offset: int
) -> list[range]:
    """Which neighbours fit into one segment, as ranges of indexes in `segments`.

    Sizes before cleaning are used, so that the result always fits. `end_offset` is where the segment
    after the last one begins.
    """
    groups: list[range] = []
    at = 0
    while at < len(segments):
        first = segments[at]
        size, offset_index, time_index = first.size, first.offset_index_bytes, first.time_index_bytes
        stop = at + 1
        while stop < len(segments):
            segment = segments[stop]
            size += segment.size
            offset_index += segment.offset_index_bytes
            time_index += segment.time_index_bytes
            next_base = segments[stop + 1].base_offset if stop + 1 < len(segments) else end_offset
            reaches_too_far = segment.size > 0 and next_base - 1 - first.base_offset > MAX_RELATIVE_OFFSET
            if size > max_segment_bytes or max(offset_index, time_index) > max_index_bytes or reaches_too_far:
                break
            stop += 1
        groups.append(range(at, stop))
        at = stop
    return groups
