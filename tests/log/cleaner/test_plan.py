from __future__ import annotations

from collections.abc import Sequence

import pytest

from odradek.common.config import LONG_MAX
from odradek.log.cleaner.plan import (
    ClosedSegment,
    LogState,
    LogToClean,
    dirtiest,
    first_dirty_offset,
    group_segments,
    log_to_clean,
    wants_cleaning,
)
from odradek.log.config import LogConfig

COMPACTED = LogConfig(cleanup_policy=("compact",))


def a_segment(
    base_offset: int, size: int = 100, *, index_bytes: int = 8, first_ms: int = 1000, largest_ms: int = 1000
) -> ClosedSegment:
    return ClosedSegment(base_offset, size, index_bytes, index_bytes, lambda: first_ms, lambda: largest_ms)


def a_log(
    segments: Sequence[ClosedSegment],
    *,
    active: int = 100,
    start: int = 0,
    stable: int = 1000,
    end: int = 1000,
    config: LogConfig = COMPACTED,
) -> LogState:
    return LogState(segments, active, start, stable, end, config)


THREE = [a_segment(0), a_segment(40), a_segment(70)]


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [(None, 5), (50, 50), (4, 5), (1001, 5), (1000, 1000), (5, 5)],
    ids=["none yet", "known", "below the log start", "behind the log end", "at the log end", "at the start"],
)
def test_cleaning_continues_at_its_end_if_that_is_in_the_log(checkpoint: int | None, expected: int) -> None:
    assert first_dirty_offset(a_log(THREE, start=5), checkpoint) == expected


def test_everything_up_to_the_active_segment_is_cleaned() -> None:
    assert log_to_clean(a_log(THREE), 40, 0) == LogToClean(40, 100, 100, 200, is_overdue=False)


@pytest.mark.parametrize(("stable", "end"), [(100, 100), (99, 70), (70, 70), (69, 40), (39, 0), (0, 0)])
def test_the_segment_that_holds_the_last_stable_offset_is_left_alone(stable: int, end: int) -> None:
    assert log_to_clean(a_log(THREE, stable=stable), None, 0).end_offset == end


def test_nothing_is_dirty_when_the_end_lies_before_the_checkpoint() -> None:
    target = log_to_clean(a_log(THREE, stable=45), 70, 0)

    assert (target.first_dirty_offset, target.end_offset, target.dirty_bytes) == (70, 70, 0)
    assert not wants_cleaning(target, 0.0)


def test_young_segments_are_left_alone_for_the_minimum_lag() -> None:
    config = COMPACTED.replace(min_compaction_lag_ms=500)
    segments = [a_segment(0, largest_ms=1000), a_segment(40, largest_ms=1501), a_segment(70, largest_ms=900)]

    assert log_to_clean(a_log(segments, config=config), None, 2000).end_offset == 40
    assert log_to_clean(a_log(segments, config=config), None, 2001).end_offset == 100


def test_the_maximum_lag_forces_a_log_in_below_the_ratio() -> None:
    config = COMPACTED.replace(max_compaction_lag_ms=500)
    segments = [a_segment(0, size=9000), a_segment(40, first_ms=1000)]

    early = log_to_clean(a_log(segments, config=config), 40, 1500)
    late = log_to_clean(a_log(segments, config=config), 40, 1501)

    assert not wants_cleaning(early, 0.5)
    assert wants_cleaning(late, 0.5)


def test_timestamps_are_not_asked_for_without_a_lag() -> None:
    def refuse() -> int:
        raise AssertionError("a read from the disk")

    segments = [ClosedSegment(0, 100, 8, 8, refuse, refuse)]

    assert COMPACTED.max_compaction_lag_ms == LONG_MAX
    assert log_to_clean(a_log(segments), None, 0).dirty_bytes == 100


@pytest.mark.parametrize(("ratio", "wants"), [(0.49, True), (0.5, False), (1.0, False)])
def test_a_log_is_cleaned_when_more_than_the_ratio_is_dirty(ratio: float, wants: bool) -> None:
    assert wants_cleaning(LogToClean(0, 10, 100, 100, is_overdue=False), ratio) is wants


def test_the_dirtiest_log_comes_first() -> None:
    ratios = {"a": (50, 50), "b": (10, 90), "c": (0, 0), "d": (1, 9)}
    targets = [(name, LogToClean(0, 1, *sizes, is_overdue=False)) for name, sizes in ratios.items()]

    assert dirtiest(targets) == targets[1]
    assert dirtiest([]) is None


def group_sizes(
    segments: Sequence[ClosedSegment], *, end: int = 100, size: int = 250, index: int = 1000
) -> list[int]:
    groups = group_segments(segments, max_segment_bytes=size, max_index_bytes=index, end_offset=end)
    assert [place for group in groups for place in group] == list(range(len(segments)))
    return [len(group) for group in groups]


def test_groups_stay_within_the_size_of_a_segment() -> None:
    assert group_sizes(THREE, size=250) == [2, 1]
    assert group_sizes(THREE, size=300) == [3]
    assert group_sizes([a_segment(0, 900), a_segment(5, 10)], size=300) == [1, 1]


def test_groups_stay_within_the_size_of_an_index() -> None:
    assert group_sizes(THREE, size=1000, index=16) == [2, 1]


def test_groups_stay_within_the_offsets_that_an_index_can_hold() -> None:
    far = 2**31 - 1
    assert group_sizes([a_segment(0), a_segment(10)], end=far + 1) == [2]
    assert group_sizes([a_segment(0), a_segment(10)], end=far + 2) == [1, 1]
    assert group_sizes([a_segment(0), a_segment(10), a_segment(far + 1)], end=far + 5, size=900) == [2, 1]
    assert group_sizes([a_segment(0), a_segment(10), a_segment(far + 2)], end=far + 5, size=900) == [1, 2]


def test_empty_segments_join_whatever_lies_between() -> None:
    far = 2**31
    assert group_sizes(
        [a_segment(0), a_segment(10, size=0), a_segment(far + 10)], end=far + 20, size=900
    ) == [2, 1]
