"""Limits for followers that catch up, on either side. Pure.

Kafka compares the rate of the last seconds with the limit before each fetch. Here a fetch is paid for after
it was made: its bytes take as long as the rate allows, whichever partition is next. The follower waits that
long before it fetches again; the leader answers without records meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

ALL = ("*",)


class ReplicationThrottle:
    """The bytes of all throttled followers of a broker, or of all throttled leaders. Owned by one loop."""

    def __init__(self) -> None:
        self._owed_bytes = 0.0
        self._settled_ms = 0.0

    def add(self, size: int, bytes_per_second: int, now_ms: float) -> None:
        """So many bytes were fetched."""
        self._settle(bytes_per_second, now_ms)
        self._owed_bytes += size

    def wait_ms(self, bytes_per_second: int, now_ms: float) -> int:
        """How long until all bytes are paid for; less when the rate is raised meanwhile."""
        self._settle(bytes_per_second, now_ms)
        return int(self._owed_bytes * 1000 / max(1, bytes_per_second))

    def _settle(self, bytes_per_second: int, now_ms: float) -> None:
        paid_bytes = (now_ms - self._settled_ms) * max(1, bytes_per_second) / 1000
        self._owed_bytes = max(0.0, self._owed_bytes - paid_bytes)
        self._settled_ms = now_ms


def is_throttled(listed: Sequence[str], partition: int, broker_id: int) -> bool:
    """Whether `follower.replication.throttled.replicas` names this replica, or `leader...` this leader."""
    return tuple(listed) == ALL or f"{partition}:{broker_id}" in listed
