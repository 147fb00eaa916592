"""A broker's handlers over real sockets and real logs, without a cluster around them."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import uvloop

from net.serving import serve
from odradek.broker.background.log_cleaning import LogCleaning
from odradek.broker.background.log_moves import LogMoves
from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.requests.fetch.fetch_sessions import FetchSessions
from odradek.broker.requests.services import Services
from odradek.broker.requests.waiting.purgatory import CommitPurgatory, Purgatory
from odradek.broker.settings.dynamic.broker_settings import BrokerSettings
from odradek.broker.settings.dynamic.group_configs import GroupConfigs
from odradek.broker.settings.dynamic.topic_settings import TopicSettings
from odradek.broker.settings.load import load
from odradek.cluster.features import ClusterFeatures
from odradek.cluster.metadata import MetadataImage
from odradek.cluster.topics.topic_admin import TopicAdmin
from odradek.common.clock import SystemClock
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.directories.log_manager import LogManager
from odradek.net.request_limit import RequestLimit
from odradek.net.server import Listener
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.structs import Message
from odradek.replication.partition import LeaderAndIsrState, Partition
from odradek.replication.replica_manager import ReplicaManager
from odradek.testing.memory_store import MemoryEnsemble
from odradek.transactions.producer_ids import ProducerIds

TOPIC_ID = UUID(int=7).bytes
BROKER_ID = 0


class Wire:
    """One client connection that sends and receives messages."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.sent = 0

    def send(self, api_key: ApiKey, version: int, body: Message) -> int:
        self.sent += 1
        for part in encode_request(api_key, version, self.sent, "test", body):
            self.writer.write(bytes(part))
        return self.sent

    async def receive(self, api_key: ApiKey, version: int) -> Any:
        size = struct.unpack(">i", await self.reader.readexactly(4))[0]
        return decode_response(api_key, version, await self.reader.readexactly(size))

    async def ask(self, api_key: ApiKey, version: int, body: Message) -> Any:
        asked = self.send(api_key, version, body)
        answered, response = await self.receive(api_key, version)
        assert answered == asked
        return response


class Broker:
    """Services, dispatcher and a listener on a free port."""

    def __init__(
        self,
        directory: Path,
        loop: asyncio.AbstractEventLoop,
        broker_id: int = BROKER_ID,
        settings: Sequence[str] = (),
    ) -> None:
        self.broker_id = broker_id
        self.logs = LogManager([str(directory)], broker_id=broker_id, cluster_id="test")
        self.clock = SystemClock()
        self.logs.start(self.clock.now_ms(), lambda topic: LogConfig())
        config = load(None, settings).config
        self.store: Any = MemoryEnsemble().open_session()
        replicas = ReplicaManager(broker_id, self.logs, self._on_progress)
        self.cleaning = cleaning = LogCleaning(self.logs, config.cleaner, self.clock, replicas.disk_failed)
        self.services = Services(
            broker_id=broker_id,
            cluster_id="test",
            clock=self.clock,
            loop=loop,
            pool=ThreadPoolExecutor(2),
            replicas=replicas,
            fetch_sessions=FetchSessions(1000),
            waiting_produces=CommitPurgatory(loop),
            waiting_flushes=CommitPurgatory(loop, until_flushed=True),
            waiting_fetches=Purgatory(loop),
            image=MetadataImage("test"),
            producer_ids=ProducerIds(lambda: self.store, broker_id),
            config=lambda: config,
            topic_settings=TopicSettings(lambda: config),
            broker_settings=BrokerSettings(
                lambda: self.store, lambda: broker_id, lambda: config, lambda _: None
            ),
            group_configs=GroupConfigs(lambda: self.store, lambda: config),
            topics=TopicAdmin(lambda: self.store, list),
            moves=LogMoves(replicas, cleaning, self.clock, self.in_pool, max_parallel=1),
            request_limit=RequestLimit(),
        )
        self.services.features = ClusterFeatures(lambda: self.store)
        self.listener = Listener(
            Dispatcher(self.services, "PLAINTEXT").handle, request_limit=self.services.request_limit
        )
        serve(self.listener)

    async def in_pool(self, step: Callable[[], Any]) -> Any:
        return await self.services.loop.run_in_executor(self.services.pool, step)

    def _on_progress(self, partition: Partition) -> None:
        self.services.on_progress(partition)

    def host(
        self,
        topic: str = "orders",
        partition: int = 0,
        *,
        state: LeaderAndIsrState | None = None,
        **settings: Any,
    ) -> Partition:
        own = self.broker_id
        state = state or LeaderAndIsrState(own, 0, (own,), (own,), 0)
        return self.services.replicas.host(
            TopicPartition(topic, partition),
            TOPIC_ID,
            state,
            LogConfig(**settings),
            now_ms=self.clock.now_ms(),
        )

    async def connect(self) -> Wire:
        return Wire(*await asyncio.open_connection("127.0.0.1", self.listener.port))

    def close(self) -> None:
        self.listener.close()
        self.services.pool.shutdown()
        self.logs.stop(self.clock.now_ms())


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Any], None]:
    """Runs a coroutine function on uvloop, with a broker and a connection to it."""

    async def with_broker(scenario: Any) -> None:
        broker = Broker(tmp_path / "data", asyncio.get_running_loop())
        wire = await broker.connect()
        try:
            await asyncio.wait_for(scenario(broker, wire), 20)
        finally:
            wire.writer.close()
            broker.close()

    def run_scenario(scenario: Any) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(with_broker(scenario))

    (tmp_path / "data").mkdir()
    return run_scenario
