"""Waiting for bytes on a descriptor, or for a ring of the bell beside it, as compiled code does it.

readiness.pxd has the C side; both are used alike.
"""

from __future__ import annotations

import select

BYTES = 1
"""The descriptor has bytes, or has come to its end."""
BELL = 2
"""The bell rang."""


def wait_for_bytes(fd: int, bell: int, timeout_ms: int) -> int:
    """`BYTES`, `BELL`, both, or 0: the time is over, or a signal came. Signal handlers run, and may raise."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.register(bell, select.POLLIN)
    ready = [known for known, _ in poll.poll(timeout_ms)]
    return BYTES * (fd in ready) | BELL * (bell in ready)
