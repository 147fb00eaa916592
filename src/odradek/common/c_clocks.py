"""The two clocks for compiled code: one call, without a Python object for the result.

c_clocks.pxd has the C side; both are used alike. For shells: deciding code takes its time as an argument.
"""

from __future__ import annotations

import time

from odradek.common.simulated_clock import current_simulated_seconds


def monotonic_seconds() -> float:
    """What `time.monotonic` and the event loop's `time` return; the simulated time in a simulation."""
    simulated = current_simulated_seconds()
    return simulated if simulated >= 0 else time.monotonic()


def wall_clock_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
