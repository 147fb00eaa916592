"""What replication counts: plain integers, read by the metrics."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class ReplicationCounters:
    """Owned by the replica manager, on the loop. ISR changes count when the controller has confirmed them."""

    isr_shrinks: int = 0
    isr_expands: int = 0
    failed_isr_updates: int = 0
    fetched_bytes: int = 0
    truncations: int = 0
    corrupt_batches: int = 0
    failed_fetches: int = 0
