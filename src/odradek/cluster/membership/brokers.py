"""A broker as others see it: its id, its epoch, its rack, and where each listener can be reached."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

UNKNOWN_BROKER_EPOCH = -1


class SecurityProtocol(IntEnum):
    """The security protocol of a listener, with the numbers of UpdateMetadata."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


class Endpoint(NamedTuple):
    """Where one listener can be reached."""

    listener: str
    host: str
    port: int
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT


class Broker(NamedTuple):
    """One registered broker; `epoch` changes with every registration of the id (KIP-380)."""

    broker_id: int
    endpoints: tuple[Endpoint, ...] = ()
    rack: str | None = None
    epoch: int = UNKNOWN_BROKER_EPOCH
    # The levels that it supports, lowest and highest, as it has registered them.
    features: Mapping[str, tuple[int, int]] = MappingProxyType({})

    def endpoint(self, listener: str) -> Endpoint | None:
        """Where this broker serves a listener of that name, if it does."""
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None
