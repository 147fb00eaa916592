"""A whole broker for tests, on the embedded store and a free port."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from odradek.broker.config.load import load
from odradek.broker.server import BrokerServer
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.structs import Message

Found = TypeVar("Found")


class RunningBroker:
    """A broker on a loop in a thread of its own."""

    def __init__(self, directory: Path, *settings: str) -> None:
        places = (f"log.dirs={directory}", "listeners=PLAINTEXT://127.0.0.1:0")
        self.config = load(None, [*places, *settings]).config
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.address = ""

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self.loop, self.stopping = asyncio.get_running_loop(), asyncio.Event()
        self.server = BrokerServer(self.config)
        await self.server.start()
        (self.address,) = self.server.addresses()
        self.ready.set()
        await self.stopping.wait()
        await self.server.stop()

    def on_loop(self, look: Callable[[BrokerServer], Found]) -> Found:
        """What a function finds in the broker, on the loop that owns it."""

        async def looking() -> Found:
            return look(self.server)

        return asyncio.run_coroutine_threadsafe(looking(), self.loop).result(20)

    def ask(self, api_key: ApiKey, version: int, body: Message) -> Any:
        """The answer to a message that no client would send."""
        with socket.create_connection(self.address.split(":"), timeout=60) as connection:
            for part in encode_request(api_key, version, 1, "test", body):
                connection.sendall(part)
            with connection.makefile("rb") as answer:
                (size,) = struct.unpack(">i", answer.read(4))
                return decode_response(api_key, version, answer.read(size))[1]

    def __enter__(self) -> RunningBroker:
        self.thread.start()
        assert self.ready.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.stopping.set)
        self.thread.join(20)
        assert not self.thread.is_alive()
