"""The clock for compiled code, as interpreted code reads it."""

from __future__ import annotations

import time

from odradek.common.c_clocks import monotonic_seconds
from odradek.common.simulated_clock import set_simulated_seconds


def test_interpreted_code_reads_the_clock_and_the_simulated_time():
    assert abs(monotonic_seconds() - time.monotonic()) < 5
    try:
        set_simulated_seconds(12.5)
        assert monotonic_seconds() == 12.5
    finally:
        set_simulated_seconds(-1.0)
