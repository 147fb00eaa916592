"""A TCP proxy between a client and a broker that can cut, hold and swallow, as networks do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
CHUNK_BYTES = 64 * 1024


class Proxy:
    """Forwards to `upstream` from a thread of its own; a test's thread may call the public methods."""

    def __init__(self) -> None:
        self.upstream = ""
        self.port = 0
        self.connections = 0
        self._is_up = True
        self._answers_until_cut: int | None = None
        self._request_bytes_until_cut: int | None = None
        self._may_flow = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._ready = threading.Event()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cut(self) -> None:
        """End every connection; new ones are welcome."""
        self._on_loop(self._cut)

    def pause(self) -> None:
        """Hold all bytes back, in both directions; connections stay open."""
        self._on_loop(self._may_flow.clear)

    def resume(self) -> None:
        self._on_loop(self._may_flow.set)

    def go_down(self) -> None:
        """End every connection, and every new one at once."""
        self._is_up = False
        self.cut()

    def come_up(self) -> None:
        self._is_up = True

    def cut_instead_of_answer(self, answers: int) -> None:
        """Let so many chunks of answers pass; in place of the next one, end the connection."""
        self._answers_until_cut = answers

    def cut_in_request(self, count: int) -> None:
        """Let so many bytes of requests pass, and with the next one end the connection."""
        self._request_bytes_until_cut = count

    def __enter__(self) -> Proxy:
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(20)
        assert not self._thread.is_alive()

    def _on_loop(self, act: Callable[[], Found]) -> Found:
        async def acting() -> Found:
            return act()

        return asyncio.run_coroutine_threadsafe(acting(), self._loop).result(20)

    def _cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        self._may_flow.set()
        server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopping.wait()
        server.close()
        self._may_flow.set()
        self._cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if not self._is_up:
            writer.transport.abort()
            return
        host, port = self.upstream.split(":")
        try:
            answers, requests = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, requests}
        self._writers |= ends
        try:
            await asyncio.gather(
                self._copy(reader, requests, is_answer=False), self._copy(answers, writer, is_answer=True)
            )
        except OSError:
            pass
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()

    async def _copy(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, *, is_answer: bool) -> None:
        while chunk := await source.read(CHUNK_BYTES):
            await self._may_flow.wait()
            if not is_answer and self._request_bytes_until_cut is not None:
                left = self._request_bytes_until_cut - len(chunk)
                self._request_bytes_until_cut = left if left >= 0 else None
                if left < 0:
                    to.write(chunk[:left])
                    await to.drain()
                    raise ConnectionResetError
            if is_answer and self._answers_until_cut is not None:
                self._answers_until_cut -= 1
                if self._answers_until_cut < 0:
                    self._answers_until_cut = None
                    raise ConnectionResetError
            to.write(chunk)
            await to.drain()
        raise ConnectionResetError
