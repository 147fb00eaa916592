"""A limit for followers that catch up: how long to wait after each fetch. Pure.

Kafka compares the rate of the last seconds with the limit before each fetch. Here a fetch is paid for after
it was made: its bytes take as long as the rate allows, whichever partition is next.
"""

from __future__ import annotations

from collections.abc import Sequence

ALL = ("*",)


class Throttle:
    """The bytes that all throttled followers of a broker have fetched. Owned by its fetchers, on the loop."""

    def __init__(self) -> None:
        self._paid_until_ms = 0.0

    def delay_ms(self, size: int, bytes_per_second: int, now_ms: float) -> int:
        """How long to wait now that so many bytes were fetched."""
        took_ms = size * 1000 / max(1, bytes_per_second)
        self._paid_until_ms = max(self._paid_until_ms, now_ms) + took_ms
        return int(self._paid_until_ms - now_ms)


def is_throttled(listed: Sequence[str], partition: int, broker_id: int) -> bool:
    """Whether `follower.replication.throttled.replicas` names this replica."""
    return tuple(listed) == ALL or f"{partition}:{broker_id}" in listed
