"""Decides which warnings about a fault that goes on are logged: a peer may send the same request for ever."""

from __future__ import annotations

from collections.abc import Hashable

INTERVAL_MS = 60_000
MAX_KEYS = 1000


class RepeatedWarnings:
    """When each warning was last logged. Owned by the one that logs them."""

    __slots__ = ("_logged_ms",)

    def __init__(self) -> None:
        self._logged_ms: dict[Hashable, int] = {}

    def is_due(self, key: Hashable, now_ms: int) -> bool:
        """Whether to log the warning of this key; not again for `INTERVAL_MS` then."""
        last_ms = self._logged_ms.get(key)
        # A clock that was set back must not silence it.
        if last_ms is not None and last_ms <= now_ms < last_ms + INTERVAL_MS:
            return False
        if len(self._logged_ms) >= MAX_KEYS:
            self._logged_ms.clear()
        self._logged_ms[key] = now_ms
        return True
