"""Counters of a consumer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ConsumerStatistics:
    """Counts since the start; `Consumer.statistics()` returns a copy."""

    records_returned: int = 0
    """By poll, iteration and poll_table."""
    polls: int = 0
    fetches: int = 0
    """Responses with data of one partition."""
    bytes_fetched: int = 0
    """Of batches, as they came."""
    buffered_bytes: int = 0
    """Fetched and not returned yet, at this moment."""
