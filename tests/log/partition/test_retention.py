from __future__ import annotations

from odradek.log.partition.retention import Deletion, DeletionReason, RetainedSegment, segments_to_delete


def segment(end: int, size: int = 100, timestamp_ms: int = 0) -> RetainedSegment:
    return RetainedSegment(end, size, lambda: timestamp_ms)


def decide(
    segments: list[RetainedSegment],
    *,
    now_ms: int = 1000,
    retention_ms: int = -1,
    retention_bytes: int = -1,
    log_start_offset: int = 0,
    high_watermark: int = 10**6,
    deletes: bool = True,
) -> Deletion | None:
    return segments_to_delete(
        segments,
        now_ms=now_ms,
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        log_start_offset=log_start_offset,
        high_watermark=high_watermark,
        deletes=deletes,
    )


def test_nothing_goes_when_nothing_is_limited() -> None:
    assert decide([segment(10), segment(20)]) is None


def test_time_deletes_the_prefix_that_is_too_old() -> None:
    segments = [segment(10, timestamp_ms=100), segment(20, timestamp_ms=899), segment(30, timestamp_ms=900)]
    assert decide(segments, retention_ms=100) == Deletion(2, DeletionReason.TIME)


def test_a_young_segment_protects_all_behind_it() -> None:
    segments = [segment(10, timestamp_ms=950), segment(20, timestamp_ms=0)]
    assert decide(segments, retention_ms=100) is None


def test_all_segments_may_expire_but_an_empty_last_one_stays() -> None:
    old = [segment(10), segment(20)]
    assert decide(old, retention_ms=100) == Deletion(2, DeletionReason.TIME)
    assert decide([segment(10), segment(10, size=0)], retention_ms=100) == Deletion(1, DeletionReason.TIME)
    assert decide([segment(10, size=0)], retention_ms=100) is None


def test_size_deletes_while_enough_is_left() -> None:
    segments = [segment(10), segment(20), segment(30)]
    assert decide(segments, retention_bytes=200) == Deletion(1, DeletionReason.SIZE)
    assert decide(segments, retention_bytes=201) is None
    assert decide(segments, retention_bytes=0) == Deletion(2, DeletionReason.SIZE)  # never the active one


def test_segments_below_the_log_start_go_even_if_the_topic_only_compacts() -> None:
    segments = [segment(10), segment(20), segment(30)]
    found = decide(segments, log_start_offset=20, retention_ms=1, deletes=False)
    assert found == Deletion(2, DeletionReason.LOG_START_OFFSET)
    assert decide(segments, log_start_offset=19, deletes=False) == Deletion(
        1, DeletionReason.LOG_START_OFFSET
    )


def test_nothing_above_the_high_watermark_goes() -> None:
    segments = [segment(10), segment(20), segment(30)]
    assert decide(segments, retention_ms=0, high_watermark=19) == Deletion(1, DeletionReason.TIME)
    assert decide(segments, retention_ms=0, high_watermark=9) is None
