"""The URL of the shared store, and opening it.

sqlite:PATH                               the embedded store, for the brokers of one machine
sqlite:PATH?synchronous=off               ... that a power cut may damage, but not a kill: for tests
zookeeper://host:port,host:port/chroot    a ZooKeeper ensemble, for many machines
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from odradek.common.errors import ConfigError
from odradek.coordination.embedded.store import SqliteStore
from odradek.coordination.store import Store

DEFAULT_SESSION_TIMEOUT_MS = 18_000  # Kafka's zookeeper.session.timeout.ms
DEFAULT_ZOOKEEPER_PORT = 2181
UNSYNCED = "?synchronous=off"

_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])(?::(?P<port>[0-9]{1,5}))?\Z")


class SqliteUrl(NamedTuple):
    """The embedded store."""

    path: Path
    is_synced: bool = True


class ZooKeeperUrl(NamedTuple):
    """An ensemble; the chroot is `/a/b` or empty."""

    servers: tuple[str, ...]
    chroot: str = ""

    @property
    def hosts(self) -> str:
        """As ZooKeeper's clients want it."""
        return ",".join(self.servers) + self.chroot


def parse_url(url: str) -> SqliteUrl | ZooKeeperUrl:
    """Parse a URL; the ConfigError shows the format."""
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite" and rest.removesuffix(UNSYNCED).strip():
        return SqliteUrl(Path(rest.removesuffix(UNSYNCED)), is_synced=not rest.endswith(UNSYNCED))
    if scheme == "zookeeper" and rest.startswith("//"):
        return _parse_ensemble(url, rest.removeprefix("//"))
    raise ConfigError(f"{url!r} names no store: use sqlite:PATH or zookeeper://host:port,host:port/chroot")


def _parse_ensemble(url: str, rest: str) -> ZooKeeperUrl:
    servers, slash, chroot = rest.partition("/")
    names = chroot.split("/") if chroot else []
    if any(name in {"", ".", ".."} for name in names):
        raise ConfigError(f"{url!r}: /{chroot} cannot be a chroot")
    return ZooKeeperUrl(
        servers=tuple(_parse_server(url, server) for server in servers.split(",")),
        chroot=slash + chroot if chroot else "",
    )


def _parse_server(url: str, server: str) -> str:
    match = _HOST.match(server)
    if match is None or int(match["port"] or 1) not in range(1, 65536):
        raise ConfigError(f"{url!r}: {server!r} is not host:port")
    return f"{match['name']}:{match['port'] or DEFAULT_ZOOKEEPER_PORT}"


async def open_store(
    url: str,
    *,
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
    connection_timeout_ms: int | None = None,
) -> Store:
    """Begin a session at the store that the URL names; waits for an ensemble up to the time-out."""
    match parse_url(url):
        case SqliteUrl(path, is_synced):
            return await SqliteStore.open(path, session_timeout_ms=session_timeout_ms, is_synced=is_synced)
        case ZooKeeperUrl() as ensemble:
            # kazoo costs 50 ms to import; not needed for the embedded store.
            from odradek.coordination.zookeeper import ZooKeeperStore  # noqa: PLC0415

            return await ZooKeeperStore.open(
                ensemble.hosts,
                session_timeout_ms=session_timeout_ms,
                connection_timeout_ms=session_timeout_ms
                if connection_timeout_ms is None
                else connection_timeout_ms,
            )
