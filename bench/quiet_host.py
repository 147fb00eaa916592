"""Measures and reduces scheduling noise of the machine, for benchmarks of tail latency.

A host takes the processors of its virtual machines away now and then, for milliseconds. The guest's kernel is
reported by the host how long that was ("steal"), so what was measured meanwhile can be measured again. And a
processor with nothing to do is handed back to the host, which takes its time to return it: where the kernel
lets us (`/dev/cpu_dma_latency`, as latency profiles of servers use it), it can be kept awake instead. What is
left is seen by a process that only reads the clock, and is printed beside the figures.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PAUSE_MS = 0.5
"""Shorter ones are interrupts and the like."""
WAKEFULNESS = "/dev/cpu_dma_latency"
NO_LATENCY = (0).to_bytes(4, "little")


def pauses_ms(seconds: float) -> list[float]:
    """The pauses of this process, in milliseconds, while it reads the clock for `seconds`."""
    found = []
    last = time.perf_counter()
    end = last + seconds
    while last < end:
        now = time.perf_counter()
        if (now - last) * 1000 > PAUSE_MS:
            found.append((now - last) * 1000)
        last = now
    return found


def stolen_ticks() -> int:
    """Steal time of all processors so far, in ticks of 10 ms."""
    first_line = Path("/proc/stat").read_text().split("\n", 1)[0]
    return int(first_line.split()[8])


@contextmanager
def processors_awake() -> Iterator[None]:
    """Within this context, no processor enters an idle state, so that a woken thread runs at once.

    OSError without permission; check `can_keep_awake` first.
    """
    descriptor = os.open(WAKEFULNESS, os.O_WRONLY)
    try:
        os.write(descriptor, NO_LATENCY)
        yield
    finally:
        os.close(descriptor)


def can_keep_awake() -> bool:
    """Whether `processors_awake` works here: it needs root."""
    return os.access(WAKEFULNESS, os.W_OK)
