"""Exponential backoff with jitter: the pause before another attempt doubles each time, up to a limit.

Without the jitter, all clients of a lost broker would reconnect in the same millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass

JITTER = 0.2


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double from `base_ms` to `max_ms`."""

    base_ms: int
    max_ms: int

    def pause_ms(self, failures: int, random_value: float) -> float:
        """The pause after so many failures in a row, from 1 on; `random_value` is in [0, 1)."""
        # 2**30 times any base is beyond every limit, and later powers only cost time.
        doubled = self.base_ms * 2 ** min(failures - 1, 30)
        return float(min(doubled, self.max_ms) * (1 - JITTER + 2 * JITTER * random_value))
