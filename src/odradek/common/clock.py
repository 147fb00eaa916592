# cython: annotation_typing=False
"""The wall clock: read by the outer layers, passed as an argument to pure code.

Compiled by Cython (clock.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from typing import Protocol

import cython

if cython.compiled:
    from cython.cimports.odradek.common.c_clocks import wall_clock_ms
else:
    from odradek.common.c_clocks import wall_clock_ms


class Clock(Protocol):
    """A source of wall-clock time."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        now: int = wall_clock_ms()
        return now
