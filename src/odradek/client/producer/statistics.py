"""Counters of a producer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ProducerStatistics:
    """Counts since the start. Written on the loop; `Producer.statistics()` returns a copy."""

    records_sent: int = 0
    """Accepted by send and send_table."""
    records_delivered: int = 0
    records_failed: int = 0
    batches_sent: int = 0
    """Repetitions included."""
    batches_split: int = 0
    """That a broker found too large."""
    bytes_sent: int = 0
    """Of batches, as they went out."""
    requests_sent: int = 0
    retries: int = 0
    buffered_bytes: int = 0
    """Of `buffer_memory`, at this moment."""

    def count_request(self, batches: int, size: int) -> None:
        """A request with so many batches goes out, of `size` bytes together."""
        self.requests_sent += 1
        self.batches_sent += batches
        self.bytes_sent += size

    def count_delivered(self, records: int) -> None:
        """A batch is acknowledged."""
        self.records_delivered += records

    def count_failed(self, records: int) -> None:
        """A batch has failed."""
        self.records_failed += records
