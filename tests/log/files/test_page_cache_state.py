from __future__ import annotations

from odradek.log.files.page_cache_state import RECENT_TAIL_BYTES, CachedRange, LogEndMark, PageCacheState

MIB = 1 << 20


def test_nothing_is_cached_that_was_there_before_the_first_look() -> None:
    state = PageCacheState()
    end = LogEndMark(0, 100 * MIB, 1000)
    assert not state.covers(0, MIB, end)
    assert not state.covers(999, MIB, end)


def test_what_is_appended_after_the_first_look_is_hot() -> None:
    state = PageCacheState()
    state.covers(0, MIB, LogEndMark(0, 0, 1000))
    end = LogEndMark(0, MIB, 1100)
    assert state.covers(1000, MIB, end)
    assert not state.covers(999, MIB, end)


def test_the_hot_tail_moves_with_the_end_and_has_a_bound() -> None:
    state = PageCacheState()
    for size_mib in range(200):
        end = LogEndMark(0, size_mib * MIB, size_mib * 10)
        assert state.covers(end.offset, MIB, end)
        farthest = next(offset for offset in range(end.offset + 1) if state.covers(offset, MIB, end))
        assert (end.offset - farthest) / 10 * MIB <= 3 * RECENT_TAIL_BYTES
    assert state.covers(end.offset - 10, MIB, end)


def test_a_tail_that_nobody_looked_at_for_long_is_not_believed() -> None:
    state = PageCacheState()
    state.covers(0, MIB, LogEndMark(0, 0, 0))
    assert not state.covers(0, MIB, LogEndMark(0, 5 * RECENT_TAIL_BYTES, 500))
    assert not state.covers(499, MIB, LogEndMark(7000, 0, 500)), "another segment"
    assert state.covers(500, MIB, LogEndMark(7000, 10, 501))


def test_a_range_that_was_read_ahead_is_cached_for_reads_that_fit() -> None:
    state = PageCacheState()
    end = LogEndMark(0, 0, 10_000)
    state.run = CachedRange(100, 200, 250, MIB, 0)
    assert state.covers(100, MIB, end)
    assert state.covers(200, MIB // 2, end)
    assert not state.covers(201, MIB, end)
    assert not state.covers(99, MIB, end)
    assert not state.covers(150, MIB + 1, end)


def test_the_next_read_of_a_run_is_distinguished_from_a_jump() -> None:
    run = CachedRange(100, 200, 250, MIB, 0)
    assert run.is_followed_by(201)
    assert run.is_followed_by(250)
    assert not run.is_followed_by(251)
    assert not run.is_followed_by(100)
    assert not run.is_followed_by(5000)
