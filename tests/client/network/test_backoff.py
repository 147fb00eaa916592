from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.client.network.backoff import JITTER, Backoff


def test_pauses_double_up_to_the_limit():
    backoff = Backoff(100, 1000)
    assert [backoff.pause_ms(failures, random_value=0.5) for failures in (1, 2, 3, 4, 5, 6)] == [
        100,
        200,
        400,
        800,
        1000,
        1000,
    ]


@given(failures=st.integers(1, 10**9), random_value=st.floats(0, 1, exclude_max=True))
def test_a_pause_is_never_far_from_its_limit(failures, random_value):
    pause_ms = Backoff(100, 1000).pause_ms(failures, random_value)
    assert 100 * (1 - JITTER) <= pause_ms <= 1000 * (1 + JITTER)
