from __future__ import annotations

import pytest

from odradek.log.segment.roll import IncomingBatches, RollReason, SegmentFacts, roll_reason

QUIET = SegmentFacts(
    base_offset=0, size=500, created_ms=0, first_timestamp_ms=1000, is_index_full=False, roll_jitter_ms=0
)
INCOMING = IncomingBatches(size=100, max_timestamp_ms=1500, last_offset=10)


def reason(segment: SegmentFacts, incoming: IncomingBatches = INCOMING, now_ms: int = 0) -> RollReason | None:
    return roll_reason(segment, incoming, max_segment_bytes=1000, segment_ms=600, now_ms=now_ms)


def test_a_segment_takes_what_fits() -> None:
    assert reason(QUIET) is None
    assert reason(QUIET._replace(size=900)) is None


@pytest.mark.parametrize(
    ("segment", "incoming", "expected"),
    [
        (QUIET._replace(size=901), INCOMING, RollReason.SIZE),
        (QUIET, INCOMING._replace(max_timestamp_ms=1601), RollReason.TIME),
        (QUIET._replace(roll_jitter_ms=101), INCOMING, RollReason.TIME),
        (QUIET._replace(is_index_full=True), INCOMING, RollReason.INDEX_FULL),
        (QUIET, INCOMING._replace(last_offset=2**31), RollReason.OFFSET_OVERFLOW),
    ],
)
def test_each_condition_rolls(segment: SegmentFacts, incoming: IncomingBatches, expected: RollReason) -> None:
    assert reason(segment, incoming) is expected


def test_the_last_offset_that_an_index_can_hold_does_not_roll() -> None:
    assert reason(QUIET, INCOMING._replace(last_offset=2**31 - 1)) is None


def test_without_timestamps_the_clock_counts() -> None:
    untimed = QUIET._replace(first_timestamp_ms=-1, created_ms=100)
    assert reason(untimed, now_ms=700) is None
    assert reason(untimed, now_ms=701) is RollReason.TIME


def test_an_empty_segment_is_neither_too_small_nor_too_old() -> None:
    empty = QUIET._replace(size=0, first_timestamp_ms=-1)
    assert reason(empty, INCOMING._replace(size=5000), now_ms=10**9) is None
