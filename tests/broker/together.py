"""Several brokers on the loop of the test, on one embedded store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from odradek.broker.environment import BrokerEnvironment
from odradek.broker.server import BrokerServer
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.load import load
from odradek.coordination.store import Store
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import CreateTopicsRequest
from odradek.testing.memory_store import MemoryEnsemble, MemoryStore

from .conftest import Wire


class Brokers:
    """Brokers by id; each has a directory of its own, which it keeps over restarts."""

    def __init__(self, directory: Path, *settings: str) -> None:
        self._directory = directory
        self._settings = settings
        self.running: dict[int, BrokerServer] = {}
        self.fatal: list[Exception] = []

    def make(self, broker_id: int, *settings: str) -> BrokerServer:
        log_dir = self._directory / f"broker-{broker_id}"
        log_dir.mkdir(exist_ok=True)
        defaults = (
            f"broker.id={broker_id}",
            f"log.dirs={log_dir}",
            "listeners=PLAINTEXT://127.0.0.1:0",
            f"odradek.coordination=sqlite:{self._directory}/coordination.db?synchronous=off",
            "controlled.shutdown.retry.backoff.ms=50",
        )
        config = load(None, [*defaults, *self._settings, *settings]).config
        return BrokerServer(config, on_fatal=self.fatal.append, environment=self.environment(broker_id))

    def environment(self, broker_id: int) -> BrokerEnvironment:
        """What a broker uses of its machine."""
        return BrokerEnvironment()

    async def start(self, broker_id: int, *settings: str) -> BrokerServer:
        server = self.make(broker_id, *settings)
        await server.start()
        self.running[broker_id] = server
        return server

    async def stop(self, broker_id: int) -> None:
        await self.running.pop(broker_id).stop()

    async def connect(self, broker_id: int) -> Wire:
        host, _, port = self.running[broker_id].addresses()[0].rpartition(":")
        return Wire(*await asyncio.open_connection(host, int(port)))

    async def ask(self, broker_id: int, api_key: ApiKey, version: int, request: Any) -> Any:
        """One request on a connection of its own."""
        wire = await self.connect(broker_id)
        try:
            return await wire.ask(api_key, version, request)
        finally:
            wire.writer.close()

    async def create_topic(self, name: str, assignment: dict[int, list[int]], via: int | None = None) -> None:
        """A topic with these replicas."""
        topic = CreateTopicsRequest.Topics(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreateTopicsRequest.Topics.Assignments(partition_index=index, broker_ids=replicas)
                for index, replicas in assignment.items()
            ],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=20_000)
        broker_id = min(self.running) if via is None else via
        response = await self.ask(broker_id, ApiKey.CREATE_TOPICS, 7, request)
        assert [row.error_code for row in response.topics] == [0], response.topics

    def controller(self) -> BrokerServer:
        (active,) = [one for one in self.running.values() if one.node.controller.is_active]
        return active

    def leader(self, topic: str, index: int = 0, seen_by: int | None = None) -> int:
        """The leader as a broker reports it to clients; -2 if it does not know the partition."""
        server = self.running[min(self.running) if seen_by is None else seen_by]
        known = server.services.image.partition(topic, index)
        return -2 if known is None else known.leader


class BrokersInMemory(Brokers):
    """Brokers whose store is in memory; a test can end their sessions and hold back new ones."""

    def __init__(self, directory: Path, *settings: str) -> None:
        super().__init__(directory, *settings)
        self.ensemble = MemoryEnsemble()
        self.sessions: dict[int, MemoryStore] = {}
        self.may_connect = asyncio.Event()
        self.may_connect.set()

    def environment(self, broker_id: int) -> BrokerEnvironment:
        async def open_session(_: BrokerConfig) -> Store:
            await self.may_connect.wait()
            self.sessions[broker_id] = self.ensemble.open_session()
            return self.sessions[broker_id]

        return BrokerEnvironment(open_store=open_session)


@asynccontextmanager
async def brokers_together(
    directory: Path, count: int, *settings: str, made_by: type[Brokers] = Brokers
) -> AsyncIterator[Brokers]:
    """Brokers 1 to `count`, all ready; the first is the controller."""
    brokers = made_by(directory, *settings)
    try:
        for broker_id in range(1, count + 1):
            await brokers.start(broker_id)
        yield brokers
    finally:
        for broker_id in sorted(brokers.running, reverse=True):
            await brokers.stop(broker_id)
    assert brokers.fatal == []
