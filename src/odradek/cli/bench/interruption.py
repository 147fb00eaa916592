"""Ctrl-C as a wish to see the figures so far; a second one ends at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_CODE = 130


class Interruption:
    """Whether somebody has had enough; the loops of a run look at `is_wanted` before each record or poll."""

    def __init__(self) -> None:
        self.is_wanted = False

    def note(self, signal_number: int, _: FrameType | None) -> None:
        """The signal came; the next one is Python's own, so that a run that hangs can be ended."""
        self.is_wanted = True
        signal.signal(signal_number, signal.default_int_handler)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """While this lasts, the first SIGINT or SIGTERM is only noted."""
    interruption = Interruption()
    # Only the main thread may set handlers, and only it would be interrupted.
    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    before = {number: signal.signal(number, interruption.note) for number in numbers}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
