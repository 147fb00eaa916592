"""Opens connections to brokers."""

from __future__ import annotations

import asyncio
import socket

from odradek.client.errors import ConnectionFailed
from odradek.client.network.connection import BrokerConnection


class _Received(asyncio.BufferedProtocol):
    """The protocol of a connection; frequent calls go to the connection without another call between."""

    def __init__(self, connection: BrokerConnection) -> None:
        self.connection = connection
        self.get_buffer = connection.get_buffer  # type: ignore[method-assign]
        self.buffer_updated = connection.buffer_updated  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established."""
        self.connection.connection_made(transport)

    def eof_received(self) -> None:
        """The broker has closed its side."""
        self.connection.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is closed."""
        self.connection.connection_lost(exc)


async def connect(
    host: str,
    port: int,
    *,
    client_id: str,
    request_timeout_ms: int,
    setup_timeout_ms: int,
    allows_direct_read: bool = True,
) -> BrokerConnection:
    """A new connection that is ready for requests; ConnectionFailed if there is none."""
    address = format_address(host, port)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(setup_timeout_ms / 1000):
            _, received = await loop.create_connection(
                lambda: _Received(
                    BrokerConnection(
                        address, client_id, request_timeout_ms, allows_direct_read=allows_direct_read
                    )
                ),
                host,
                port,
            )
    except TimeoutError:
        raise ConnectionFailed(address, f"no response within {setup_timeout_ms} ms") from None
    except OSError as error:
        raise ConnectionFailed(address, _plain_reason(error)) from None
    connection = received.connection
    try:
        await connection.negotiate()
    except BaseException:
        await connection.close()
        raise
    return connection


def format_address(host: str, port: int) -> str:
    """host:port, or [host]:port for an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _plain_reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "the name is not known"
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return "the connection was refused"
    return error.strerror or str(error)
