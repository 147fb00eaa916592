"""Not faster than so many records a second: when the next record may go."""

from __future__ import annotations

from dataclasses import dataclass

# Shorter sleeps than this end late anyway; a few records together keep the rate just as well.
SHORTEST_SLEEP_S = 0.001


@dataclass(frozen=True, slots=True)
class Pace:
    """A rate that began at `start_s`; a rate of 0 or less is none."""

    records_per_second: float
    start_s: float

    def wait_s(self, sent: int, now_s: float) -> float:
        """How long to wait before the record after `sent` others; 0 while the run is not ahead."""
        if self.records_per_second <= 0:
            return 0.0
        ahead_s = self.start_s + sent / self.records_per_second - now_s
        return ahead_s if ahead_s >= SHORTEST_SLEEP_S else 0.0
