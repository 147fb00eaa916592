"""Listeners: `NAME://host:port` lists, their security protocols, and the check for unauthenticated access.

A listener that other machines can reach without authentication needs the explicit setting
`odradek.allow.unauthenticated=true`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from odradek.common.errors import ConfigError

_ENDPOINT = re.compile(r"([A-Za-z0-9_-]+)://(\[[0-9a-fA-F:.%]+\]|[0-9A-Za-z._%-]*):([0-9]+)")
HIGHEST_PORT = 65535


class SecurityProtocol(StrEnum):
    """The security protocol of a listener."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class Contradiction(ConfigError):
    """Settings that are fine alone and not together; `keys` are the ones to look at."""

    def __init__(self, message: str, *keys: str) -> None:
        self.keys = keys
        super().__init__(message)


class Endpoint(NamedTuple):
    """One listener; an empty host is every interface, port 0 any free one."""

    listener: str
    security_protocol: SecurityProtocol
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        address = _address(self.host)
        return address is not None and address.is_loopback


def parse_protocol_map(text: str) -> dict[str, SecurityProtocol]:
    """`NAME:PROTOCOL,...` as a table."""
    key = "listener.security.protocol.map"
    protocols: dict[str, SecurityProtocol] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = pair.partition(":")
        if not name.strip() or protocol.strip().upper() not in SecurityProtocol.__members__:
            raise Contradiction(f"{key}={text}: {pair} is not NAME:PROTOCOL, {_protocols()}", key)
        if name.strip().upper() in protocols:
            raise Contradiction(f"{key}={text}: {name.strip()} is there twice", key)
        protocols[name.strip().upper()] = SecurityProtocol(protocol.strip().upper())
    return protocols


def parse_endpoints(
    key: str, texts: Iterable[str], protocols: dict[str, SecurityProtocol]
) -> tuple[Endpoint, ...]:
    """The endpoints of a list; raises Contradiction for an invalid one, or two of one name."""
    endpoints = tuple(_parse_endpoint(key, text, protocols) for text in texts)
    if not endpoints:
        raise Contradiction(f"{key} must name at least one listener", key)
    names = [endpoint.listener for endpoint in endpoints]
    for name in names:
        if names.count(name) > 1:
            raise Contradiction(f"{key}={','.join(map(str, endpoints))}: {name} is there twice", key)
    return endpoints


def _parse_endpoint(key: str, text: str, protocols: dict[str, SecurityProtocol]) -> Endpoint:
    found = _ENDPOINT.fullmatch(text)
    if found is None:
        raise Contradiction(
            f"{key}={text}: must be NAME://host:port, such as PLAINTEXT://127.0.0.1:9092", key
        )
    if int(found[3]) > HIGHEST_PORT:
        raise Contradiction(f"{key}={text}: a port is at most {HIGHEST_PORT}; 0 picks a free one", key)
    name = found[1].upper()
    if name not in protocols:
        message = f"{key}={text}: listener.security.protocol.map has no protocol for {name}"
        raise Contradiction(message, key, "listener.security.protocol.map")
    return Endpoint(name, protocols[name], found[2].strip("[]"), int(found[3]))


def check_ports(endpoints: Sequence[Endpoint]) -> None:
    """Two listeners cannot share a port, unless one is for IPv4 and the other for IPv6."""
    for number, one in enumerate(endpoints):
        for other in endpoints[number + 1 :]:
            if one.port == other.port != 0 and not _are_both_families(one, other):
                raise Contradiction(f"listeners: {one} and {other} have the same port", "listeners")


def check_advertised(advertised: Sequence[Endpoint], endpoints: Sequence[Endpoint]) -> None:
    """Advertised listeners must exist and have an address that clients can use."""
    names = [endpoint.listener for endpoint in endpoints]
    for endpoint in advertised:
        if endpoint.listener not in names:
            message = f"advertised.listeners={endpoint}: listeners only has {', '.join(names)}"
            raise Contradiction(message, "advertised.listeners", "listeners")
        if (address := _address(endpoint.host)) is not None and address.is_unspecified:
            message = (
                f"advertised.listeners: clients cannot use {endpoint}; name an address that they can reach"
            )
            raise Contradiction(message, "advertised.listeners", "listeners")


def check_protocol(endpoint: Endpoint) -> None:
    """Refuse a listener that would have to encrypt or authenticate: none does so far."""
    if endpoint.security_protocol is not SecurityProtocol.PLAINTEXT:
        raise Contradiction(
            f"listener {endpoint}: {endpoint.security_protocol.value} is not offered yet; "
            f"use PLAINTEXT, on a network that you trust",
            "listeners",
            "listener.security.protocol.map",
        )


def check_reach(endpoint: Endpoint, *, is_allowed: bool) -> None:
    """Refuse a listener that other machines can reach without authentication, unless the user allows it."""
    if endpoint.is_loopback or is_allowed:
        return
    raise Contradiction(
        f"listener {endpoint} lets other machines in without authentication: use a loopback address such as "
        f"127.0.0.1, or set odradek.allow.unauthenticated=true",
        "listeners",
        "odradek.allow.unauthenticated",
    )


def _are_both_families(one: Endpoint, other: Endpoint) -> bool:
    addresses = (_address(one.host), _address(other.host))
    return {address.version for address in addresses if address is not None} == {4, 6}


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _protocols() -> str:
    return f"with a protocol of {', '.join(SecurityProtocol)}"
