"""The time of a simulation, which replaces the machine's monotonic clock in compiled code.

Compiled by Cython (simulated_clock.pxd has the C type), or interpreted as is.
"""

from __future__ import annotations

simulated_seconds = -1.0
"""Negative outside of simulations."""


def set_simulated_seconds(seconds: float) -> None:
    """Have `monotonic_seconds` return this; the machine's clock again if it is negative."""
    global simulated_seconds  # noqa: PLW0603
    simulated_seconds = seconds


def current_simulated_seconds() -> float:
    """The simulated time, for interpreted code, which does not see a C variable."""
    return simulated_seconds
