"""Waiting for what comes true a little later."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(is_so: Callable[[], bool]) -> None:
    """Return when it is so; fail when it is not within a time that only a bug takes."""
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)
