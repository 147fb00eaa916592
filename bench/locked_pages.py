"""Locks files into memory while something is measured, so that the kernel cannot evict them.

Here something has the kernel give up a few megabytes of the page cache every five seconds, from anywhere in
any file. A read that was to be served from memory then waits for the disk, in one run of four.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

MAP_LOCKED = 0x2000
"""Linux; Python's `mmap` has no name for it. Pages that are mapped so are not taken away."""


@contextmanager
def locked_in_memory(paths: Iterable[Path]) -> Iterator[None]:
    """Within this context, all pages of these files are locked; without permission, only read once."""
    with ExitStack() as kept:
        for path in paths:
            with path.open("rb") as file:
                while file.read(1 << 20):
                    pass
                if file.tell() > 0:
                    kept.enter_context(_locked(file.fileno()))
        yield


@contextmanager
def _locked(fd: int) -> Iterator[None]:
    try:
        pages = mmap.mmap(fd, 0, flags=mmap.MAP_SHARED | MAP_LOCKED, prot=mmap.PROT_READ)
    except OSError:  # an unprivileged user may lock a few megabytes only
        yield
        return
    with pages:
        yield
