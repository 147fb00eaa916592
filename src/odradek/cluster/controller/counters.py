"""What a controller counts, over all its terms: plain integers, read by the metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class ElectionCounters:
    """Owned by the broker's event loop. Counted when the new leader was written to the store."""

    elections: int = 0
    unclean: int = 0

    def count(self, leader: int, isr_before: tuple[int, ...]) -> None:
        """A partition that had a leader before has another one, or one again."""
        self.elections += 1
        if leader not in isr_before:
            self.unclean += 1
