"""Limits how fast the cleaner reads and writes."""

from __future__ import annotations

from collections.abc import Callable

_WINDOW_SECONDS = 0.3
_LEAST_PAUSE_SECONDS = 0.001


def pause_seconds(passed_bytes: int, elapsed_seconds: float, max_bytes_per_second: float) -> float:
    """How long to wait so that the average does not exceed the allowed rate."""
    return max(0.0, passed_bytes / max_bytes_per_second - elapsed_seconds)


class CleanerThrottle:
    """Counts bytes and sleeps when there are too many; used by one thread."""

    __slots__ = ("_bytes", "_clock", "_sleep", "_started", "max_bytes_per_second")

    def __init__(
        self, max_bytes_per_second: float, clock: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        """`clock` and `sleep` in seconds."""
        self.max_bytes_per_second = max_bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._started = clock()
        self._bytes = 0

    def pass_bytes(self, count: int) -> None:
        """Count bytes read or written; may sleep. Idle time is not saved up for later."""
        self._bytes += count
        elapsed = self._clock() - self._started
        pause = pause_seconds(self._bytes, elapsed, self.max_bytes_per_second)
        if pause >= _LEAST_PAUSE_SECONDS:
            self._sleep(pause)
        if elapsed + pause > _WINDOW_SECONDS:
            self._started = self._clock()
            self._bytes = 0
