"""Limits the rate at which records are sent."""

from __future__ import annotations

from dataclasses import dataclass

# Shorter sleeps are inaccurate; sending a few records together keeps the same rate.
SHORTEST_SLEEP_S = 0.001


@dataclass(frozen=True, slots=True)
class Pace:
    """A rate that applies from `start_s`; 0 or less means no limit."""

    records_per_second: float
    start_s: float

    def wait_s(self, sent: int, now_s: float) -> float:
        """How long to wait after `sent` records; 0 if the run is not ahead of the rate."""
        if self.records_per_second <= 0:
            return 0.0
        ahead_s = self.start_s + sent / self.records_per_second - now_s
        return ahead_s if ahead_s >= SHORTEST_SLEEP_S else 0.0
