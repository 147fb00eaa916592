"""`odradek.metrics.listener`: an HTTP address where Prometheus reads the broker's metrics; off by default."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from odradek.metrics.prometheus import CONTENT_TYPE, expose
from odradek.metrics.registry import Registry
from odradek.net.listening import ListenError

MAX_HEAD_BYTES = 8192
PATIENCE_SECONDS = 10.0
PATH = "/metrics"

InPool = Callable[[Callable[[], Any]], Awaitable[Any]]


class MetricsListener:
    """Answers `GET /metrics`, one request per connection. Owned by the server, on the loop.

    Metrics are read on the loop, which owns them; the text is formatted in a thread, since it may be long.
    """

    def __init__(self, registry: Registry, in_pool: InPool) -> None:
        self._registry = registry
        self._in_pool = in_pool
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port it listens on; chosen by the system if 0 was configured."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self, host: str, port: int) -> None:
        """Listen; raises ListenError if the address is not available."""
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_HEAD_BYTES)
        except OSError as error:
            raise ListenError(f"odradek.metrics.listener={host}:{port}", error) from error

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._answer(head))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # not HTTP, or disconnected
        finally:
            writer.close()

    async def _answer(self, head: bytes) -> bytes:
        method, target = [*head.split(b" ", 2), b"", b""][:2]
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", b"only GET is served here\n", "text/plain")
        if target.split(b"?")[0].decode("latin-1") != PATH:
            return _response("404 Not Found", f"the metrics are at {PATH}\n".encode(), "text/plain")
        samples = self._registry.samples()
        body = await self._in_pool(lambda: expose(samples))
        return _response("200 OK", body, CONTENT_TYPE, with_body=method == b"GET")


def _response(status: str, body: bytes, content_type: str, *, with_body: bool = True) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")
