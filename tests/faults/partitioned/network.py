"""The network between brokers and clients: a proxy before each broker, links of which can be cut and healed.

A cut link holds all bytes back, in both directions, and gives them on when it is healed, as TCP does. Whoever
connects meanwhile waits likewise.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Self

import psutil

CHUNK_BYTES = 64 * 1024
PATIENCE_SECONDS = 20
SETTLE_SECONDS = 0.05
CLIENTS = -1
"""The source of every connection that no broker opens."""

Link = tuple[int, int]
"""Who connects, and the broker that is connected to."""


class Network:
    """Forwards from a thread of its own; `pid_of` tells the process of each running broker."""

    def __init__(self, pid_of: Callable[[], dict[int, int]]) -> None:
        self._pid_of = pid_of
        self._cut_links: set[Link] = set()
        self._healed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def add(self, broker_id: int, upstream_port: int) -> str:
        """Begin to forward to a broker; the address of its proxy."""

        async def listen() -> int:
            server = await asyncio.start_server(
                lambda reader, writer: self._forward(broker_id, upstream_port, reader, writer), "127.0.0.1"
            )
            self._servers.append(server)
            return int(server.sockets[0].getsockname()[1])

        return f"127.0.0.1:{asyncio.run_coroutine_threadsafe(listen(), self._loop).result(PATIENCE_SECONDS)}"

    def cut(self, *links: Link) -> None:
        """Hold everything on these links back."""
        self._loop.call_soon_threadsafe(self._cut_links.update, links)

    def isolate(self, broker_id: int, others: Iterable[int]) -> None:
        """Cut the links between a broker and these others, in both directions."""
        self.cut(*(link for other in others for link in ((broker_id, other), (other, broker_id))))

    def heal(self) -> None:
        """Let everything through."""
        self._loop.call_soon_threadsafe(self._heal)

    def _heal(self) -> None:
        self._cut_links.clear()
        self._healed.set()
        self._healed = asyncio.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        async def stop() -> None:
            for server in self._servers:
                server.close()
            await asyncio.sleep(SETTLE_SECONDS)  # connections that were just accepted become tasks
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(SETTLE_SECONDS)  # transports that were aborted close their sockets

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result(PATIENCE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop.close()

    async def _forward(
        self, broker_id: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        link = self._source_of(writer.get_extra_info("peername")[1]), broker_id
        ends = [writer]
        try:
            await self._wait_until_whole(link)
            answers, requests = await asyncio.open_connection("127.0.0.1", port)
            ends.append(requests)
            await asyncio.gather(self._copy(link, reader, requests), self._copy(link, answers, writer))
        except OSError:
            pass
        finally:
            for end in ends:
                end.transport.abort()

    def _source_of(self, port: int) -> int:
        """The broker that has this port, or CLIENTS."""
        for broker_id, pid in self._pid_of().items():
            try:
                connections = psutil.Process(pid).net_connections("tcp4")
            except psutil.Error:
                continue
            if any(one.laddr and one.laddr.port == port for one in connections):
                return broker_id
        return CLIENTS

    async def _wait_until_whole(self, link: Link) -> None:
        while link in self._cut_links:
            await self._healed.wait()

    async def _copy(self, link: Link, source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        while chunk := await source.read(CHUNK_BYTES):
            await self._wait_until_whole(link)
            to.write(chunk)
            await to.drain()
        raise ConnectionResetError
