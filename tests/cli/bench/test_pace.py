from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.cli.bench.pace import SHORTEST_SLEEP_S, Pace


@given(rate=st.floats(0.1, 1e6), records=st.integers(1, 300))
def test_a_run_takes_as_long_as_its_rate_says(rate, records):
    now_s = 100.0
    pace = Pace(rate, now_s)
    for sent in range(records):
        now_s += pace.wait_s(sent, now_s)
    expected_s = 100 + (records - 1) / rate
    assert expected_s - SHORTEST_SLEEP_S - 1e-6 <= now_s <= expected_s + 1e-6


def test_a_run_that_is_late_does_not_wait():
    assert Pace(10, 0).wait_s(5, 0.6) == 0


def test_without_a_rate_nobody_waits():
    assert Pace(-1, 0).wait_s(10**9, 0) == Pace(0, 0).wait_s(10**9, 0) == 0
