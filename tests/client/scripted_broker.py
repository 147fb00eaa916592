"""A broker that says what a test wants said, over a real socket: for answers that no honest broker gives."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from odradek.client.network.background_loop import new_event_loop
from odradek.protocol.api import advertised, stable_versions
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_request, encode_response
from odradek.protocol.messages import ApiVersionsResponse, MetadataRequest, MetadataResponse
from odradek.protocol.structs import Message

Say = Callable[[Message], Message | bytes | Awaitable[Message | None] | None]

SERVED = (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_in_time(scenario))


async def _in_time(scenario: Coroutine[Any, Any, None]) -> None:
    async with asyncio.timeout(60):
        await scenario


class ScriptedBroker:
    """Answers each request with what `say[api_key]` returns: a message, raw bytes, or None to hang up."""

    def __init__(self, node_id: int = 0) -> None:
        self.node_id = node_id
        self.port = 0
        self.say: dict[ApiKey, Say] = {
            ApiKey.API_VERSIONS: lambda _: api_versions(),
            ApiKey.METADATA: self.metadata,
        }
        self.cluster: list[ScriptedBroker] = [self]
        self.asked: list[tuple[ApiKey, int, Message]] = []
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> ScriptedBroker:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        await self._server.wait_closed()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        """Those that neither side has ended."""
        return len(self._writers)

    def metadata(self, request: Message) -> MetadataResponse:
        assert isinstance(request, MetadataRequest)
        rows = [
            MetadataResponse.Brokers(node_id=broker.node_id, host="127.0.0.1", port=broker.port)
            for broker in self.cluster
        ]
        return MetadataResponse(brokers=rows, cluster_id="scripted", controller_id=self.cluster[0].node_id)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while await self._answer(reader, writer):
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        size = struct.unpack(">i", await reader.readexactly(4))[0]
        start, header, body = decode_request(await reader.readexactly(size))
        self.asked.append((start.api_key, start.version, body))
        said = self.say[start.api_key](body)
        if asyncio.iscoroutine(said):
            said = await said
        if isinstance(said, bytes):
            writer.write(said)
        elif isinstance(said, Message):
            for part in encode_response(start.api_key, start.version, header.correlation_id, said):
                writer.write(bytes(part))
        return said is not None


def api_versions(*keys: ApiKey) -> ApiVersionsResponse:
    served = {key: stable_versions(key) for key in keys or SERVED}
    return ApiVersionsResponse(api_keys=advertised(served))
