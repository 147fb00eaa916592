"""Whether one more connection is accepted: limits per broker, per address and per second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

UNLIMITED = 2**31 - 1
WINDOW_SECONDS = 1.0


class AdmissionLimits(NamedTuple):
    """`max.connections`, `max.connections.per.ip`, its overrides, `max.connection.creation.rate`."""

    max_connections: int = UNLIMITED
    max_connections_per_ip: int = UNLIMITED
    per_ip_overrides: Mapping[str, int] = MappingProxyType({})
    max_per_second: int = UNLIMITED


class Admission:
    """The open connections of a broker. Lives on the loop, one for all listeners; limits may be replaced.

    Other brokers are not held back by clients: connections to a privileged listener are accepted beyond
    `max_connections`, and `close_least_active` closes one of a client instead.
    """

    def __init__(self, limits: AdmissionLimits | None = None) -> None:
        self.limits = limits or AdmissionLimits()
        self.connection_count = 0
        self._per_ip: Counter[str] = Counter()
        self.close_least_active: Callable[[], None] = lambda: None

    @property
    def is_full(self) -> bool:
        """Whether the broker has as many connections as it may."""
        return self.connection_count >= self.limits.max_connections

    def refusal(self, ip: str, *, is_privileged: bool = False) -> str | None:
        """Why a connection from that address is refused; None if it is accepted."""
        limits = self.limits
        if self.is_full and not is_privileged:
            return f"the broker has {self.connection_count} connections, its limit"
        limit = limits.per_ip_overrides.get(ip, limits.max_connections_per_ip)
        if self._per_ip[ip] >= limit:
            return f"{ip} has {self._per_ip[ip]} connections, its limit"
        return None

    def opened(self, ip: str) -> None:
        """Count an accepted connection."""
        self.connection_count += 1
        self._per_ip[ip] += 1

    def closed(self, ip: str) -> None:
        """Count a closed connection."""
        self.connection_count -= 1
        self._per_ip[ip] -= 1
        if not self._per_ip[ip]:
            del self._per_ip[ip]


class CreationRate:
    """How many connections a listener has accepted in this second."""

    __slots__ = ("_count", "_window_began")

    def __init__(self) -> None:
        self._window_began = float("-inf")
        self._count = 0

    def wait_seconds(self, now: float, max_per_second: int) -> float:
        """How long the next connection has to wait; 0 if it may be accepted now."""
        if now - self._window_began >= WINDOW_SECONDS:
            self._window_began = now
            self._count = 0
        if self._count >= max_per_second:
            return self._window_began + WINDOW_SECONDS - now
        return 0.0

    def accepted(self) -> None:
        """Count an accepted connection."""
        self._count += 1
