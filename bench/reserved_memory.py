"""Memory that the host has already given: without it, a write into the page cache pays for the host.

A virtual machine may hand free memory back to its host, in blocks of megabytes, and a page that it takes
again then costs the host's time, which the guest's kernel puts to the account of whoever touches the page
first. Here a write of 16 KiB took 6 us with pages at hand and 28-35 us without, so that what was measured
was how much memory had been free before. Blocks are handed back whole. So the bench takes memory, touches it
and gives every other piece back: what lies between is free, too small to be handed back, and what the kernel
takes first. On a machine of one's own this changes nothing.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PIECE_BYTES = 512 * 1024
"""Smaller than any block that Linux hands back (2 MiB at least), larger than any folio of a write."""
FREE_BYTES = 7 << 30
"""More than all files, clients and brokers take at one time: of 3 GiB a JVM left too little."""
SPARE_BYTES = 4 << 30
"""What must be left for everybody else."""
MADV_NOHUGEPAGE = 15
"""A huge page would not be given back in parts; Python's `mmap` has no name for it on all systems."""


@contextmanager
def reserved_memory() -> Iterator[Callable[[], None]]:
    """While it lasts, the kernel has `FREE_BYTES` of free memory that the host backs, if there is so much.

    Yields how to make it anew: in the course of minutes small pages are taken out of the pieces, and a broker
    that writes by large ones then has none at hand, while one that writes by small ones still has.
    """
    wanted = 2 * FREE_BYTES
    if _available_bytes() < wanted + SPARE_BYTES:
        print("Too little memory to reserve: figures may include what the host takes for giving memory.")
        yield lambda: None
        return
    with mmap.mmap(-1, wanted, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(MADV_NOHUGEPAGE)
        memory.madvise(mmap.MADV_DONTFORK)

        def renew() -> None:
            memory.madvise(mmap.MADV_DONTNEED)
            for start in range(0, wanted, mmap.PAGESIZE):
                memory[start] = 1
            for start in range(0, wanted, 2 * PIECE_BYTES):
                memory.madvise(mmap.MADV_DONTNEED, start, PIECE_BYTES)

        renew()
        yield renew


def _available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0
