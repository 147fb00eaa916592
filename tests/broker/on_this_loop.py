"""A whole broker on the loop of the test itself, for tests that reach into it or make its disk fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from odradek.broker.server import BrokerServer
from odradek.broker.settings.load import load
from odradek.log.files.file_system import FileSystem
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import CreateTopicsRequest

from .conftest import Wire

PATIENCE_SECONDS = 30


@asynccontextmanager
async def a_broker(
    directory: Path, *settings: str, files: FileSystem | None = None
) -> AsyncIterator[tuple[BrokerServer, Wire]]:
    """A broker that serves, and a connection to it."""
    server = unstarted_broker(directory, *settings, files=files)
    await server.start()
    try:
        wire = await connect(server)
        try:
            yield server, wire
        finally:
            wire.writer.transport.abort()
    finally:
        await server.stop()


def unstarted_broker(directory: Path, *settings: str, files: FileSystem | None = None) -> BrokerServer:
    """A broker on a free port that can be started."""
    defaults = (
        f"log.dirs={directory}",
        "listeners=PLAINTEXT://127.0.0.1:0",
        f"odradek.coordination=sqlite:{directory}/coordination.db?synchronous=off",
    )
    directory.mkdir(exist_ok=True)
    return BrokerServer(load(None, [*defaults, *settings]).config, files=files, on_fatal=_fail)


def _fail(error: Exception) -> None:
    raise AssertionError("the broker cannot go on") from error


async def connect(server: BrokerServer) -> Wire:
    host, _, port = server.addresses()[0].rpartition(":")
    return Wire(*await asyncio.open_connection(host, int(port)))


def run(main: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario on the loop that brokers run on."""

    async def in_time() -> None:
        await asyncio.wait_for(main(), PATIENCE_SECONDS)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(in_time())


async def until(holds: Callable[[], Any]) -> None:
    """Wait for a condition."""
    while not holds():
        await asyncio.sleep(0.005)


async def create_topic(wire: Wire, name: str, partitions: int = 1, **configs: object) -> None:
    """A topic; settings in Python case."""
    topic = CreateTopicsRequest.Topics(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreateTopicsRequest.Topics.Configs(name=key.replace("_", "."), value=str(value))
            for key, value in configs.items()
        ],
    )
    response = await wire.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=20_000))
    assert [row.error_code for row in response.topics] == [0], response.topics
