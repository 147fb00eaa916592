"""The first Ctrl-C stops a run and prints the results so far; the second stops the process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_CODE = 130


class Interruption:
    """Whether a signal arrived; the loops of a run check `is_wanted` before each record or poll."""

    def __init__(self) -> None:
        self.is_wanted = False

    def note(self, signal_number: int, _: FrameType | None) -> None:
        """Handle the first signal and restore Python's handler, so that the next one stops the process."""
        self.is_wanted = True
        signal.signal(signal_number, signal.default_int_handler)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Within this context, the first SIGINT or SIGTERM only sets `is_wanted`."""
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
