"""How still the machine is: what a process that only reads the clock sees of it.

A host takes the processors of its virtual machines away now and then, for milliseconds, and the guest's own
counters hardly tell. No round trip can have a better tail than that, so it is told beside the figures.
"""

from __future__ import annotations

import time

PAUSE_MS = 0.5
"""Shorter ones are interrupts and the like."""


def pauses_ms(seconds: float) -> list[float]:
    """How long this process was held up, each time that it was, while it read the clock for so long."""
    found = []
    last = time.perf_counter()
    end = last + seconds
    while last < end:
        now = time.perf_counter()
        if (now - last) * 1000 > PAUSE_MS:
            found.append((now - last) * 1000)
        last = now
    return found
