"""Waiting until a descriptor is readable or a wakeup pipe has bytes, as compiled code does it.

readiness.pxd has the C side; both have the same interface.
"""

from __future__ import annotations

import select

READABLE = 1
"""The descriptor has bytes, or is at its end."""
WAKEUP = 2
"""The wakeup descriptor has bytes."""


def wait_for_bytes(fd: int, wakeup_fd: int, timeout_ms: int) -> int:
    """`READABLE`, `WAKEUP`, both, or 0 after the timeout or a signal. Signal handlers run, and may raise."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.register(wakeup_fd, select.POLLIN)
    ready = [known for known, _ in poll.poll(timeout_ms)]
    return READABLE * (fd in ready) | WAKEUP * (wakeup_fd in ready)
