"""Several brokers in this process that replicate one partition; the test plays the controller."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvloop

from broker.conftest import Broker
from odradek.broker.replication_parts import replicate
from odradek.cluster.membership.brokers import Broker as LiveBroker
from odradek.cluster.membership.brokers import Endpoint
from odradek.common.error_codes import ErrorCode
from odradek.log.leader_epochs import EpochEntry
from odradek.net.broker_connection import Address, BrokerConnections, RequestFailed
from odradek.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from odradek.replication.partition import LeaderAndIsrState, Partition

LISTENER = "PLAINTEXT"
PATIENCE_S = 30.0
SETTINGS = ("replica.fetch.wait.max.ms=100", "replica.fetch.backoff.ms=50")


async def until(condition: Callable[[], Any], patience_s: float = PATIENCE_S) -> None:
    """Wait for a condition; AssertionError if it does not come true."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.005)


class Replicated:
    """Brokers 0, 1, ... with a replica each of `orders-0`. Each partition state is as `elect` has set it."""

    def __init__(self, directory: Path, count: int = 3, settings: tuple[str, ...] = ()) -> None:
        self.directory = directory
        self.settings = SETTINGS + settings
        self.brokers: dict[int, Broker] = {}
        self.connections: dict[int, BrokerConnections] = {}
        self.addresses: dict[int, Address] = {}
        self.epochs: dict[int, int] = {}
        self.racks: dict[int, str] = {}
        self.replicas = tuple(range(count))
        self.state = LeaderAndIsrState(-1, -1, (), self.replicas, -1)
        self.config: dict[str, Any] = {}
        self.is_controller_away = False
        self.alterations: list[tuple[int, ...]] = []

    async def start(self, broker_id: int) -> Broker:
        """Start a broker, with the disk that it had."""
        directory = self.directory / f"broker-{broker_id}"
        directory.mkdir(exist_ok=True)
        loop = asyncio.get_running_loop()
        broker = Broker(directory, loop, broker_id, self.settings)
        broker.services.replicas.on_progress = broker.services.on_progress
        self.brokers[broker_id] = broker
        self.epochs[broker_id] = self.epochs.get(broker_id, broker_id * 100) + 1
        self.addresses[broker_id] = Address("127.0.0.1", broker.listener.port)
        self.connections[broker_id] = BrokerConnections(self.addresses.get, f"broker-{broker_id}")
        replicate(
            broker.services,
            self.connections[broker_id],
            self._alter,
            lambda: self.epochs[broker_id],
            broker.cleaning,
            broker.in_pool,
        )
        self._tell_of_brokers()
        return broker

    async def stop(self, broker_id: int) -> None:
        """Stop a broker; its log is closed."""
        broker = self.brokers.pop(broker_id)
        del self.addresses[broker_id]
        await broker.services.replicas.stop_replicating()
        self.connections.pop(broker_id).close()
        broker.close()
        self._tell_of_brokers()

    async def close(self) -> None:
        for broker_id in list(self.brokers):
            await self.stop(broker_id)

    def _tell_of_brokers(self) -> None:
        live = {
            broker_id: LiveBroker(
                broker_id,
                (Endpoint(LISTENER, *self.addresses[broker_id]),),
                self.racks.get(broker_id),
                self.epochs[broker_id],
            )
            for broker_id in self.brokers
        }
        for broker in self.brokers.values():
            broker.services.image.brokers = dict(live)
            broker.services.replicas.on_brokers_changed()

    def elect(self, leader: int, isr: tuple[int, ...] | None = None, only: tuple[int, ...] = ()) -> None:
        """Make a broker the leader, in the next leader epoch; all live brokers notice, or `only` some."""
        self.state = self.state._replace(
            leader_id=leader,
            leader_epoch=self.state.leader_epoch + 1,
            isr=self.state.isr if isr is None else isr,
            partition_epoch=self.state.partition_epoch + 1,
        )
        for broker_id in only or tuple(self.brokers):
            self.apply_state(broker_id)

    def apply_state(self, broker_id: int) -> Partition:
        """Bring a broker up to the present state."""
        return self.brokers[broker_id].host(state=self.state, **self.config)

    async def _alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """What the controller does about an ISR change."""
        await asyncio.sleep(0)
        if self.is_controller_away:
            raise RequestFailed("controller", "away")
        (topic,) = request.topics
        (asked,) = topic.partitions
        row = AlterPartitionResponse.Topics.Partitions()
        if asked.leader_epoch != self.state.leader_epoch:
            row.error_code = ErrorCode.FENCED_LEADER_EPOCH
        elif asked.partition_epoch != self.state.partition_epoch:
            row.error_code = ErrorCode.INVALID_UPDATE_VERSION
        elif any(
            one.broker_epoch not in (-1, self.epochs[one.broker_id]) for one in asked.new_isr_with_epochs
        ):
            row.error_code = ErrorCode.INELIGIBLE_REPLICA
        else:
            isr = tuple(one.broker_id for one in asked.new_isr_with_epochs)
            self.alterations.append(isr)
            self.state = self.state._replace(isr=isr, partition_epoch=self.state.partition_epoch + 1)
            row.leader_id, row.leader_epoch = self.state.leader_id, self.state.leader_epoch
            row.isr, row.partition_epoch = list(isr), self.state.partition_epoch
        return AlterPartitionResponse(
            topics=[AlterPartitionResponse.Topics(topic_id=topic.topic_id, partitions=[row])]
        )

    def partition(self, broker_id: int) -> Partition:
        return self.brokers[broker_id].services.replicas.get("orders", 0)

    def content(self, broker_id: int) -> bytes:
        """Every byte of the segments, as they are on the disk."""
        log = self.partition(broker_id).log
        return b"".join(segment.log.read(0, segment.log.size) for segment in log.segments)

    def leader_epochs(self, broker_id: int) -> list[EpochEntry]:
        return list(self.partition(broker_id).log.epochs)

    def written_epochs(self, broker_id: int) -> list[EpochEntry]:
        """Without that of a leader that has not written anything yet."""
        end = self.partition(broker_id).log.log_end_offset
        return [entry for entry in self.leader_epochs(broker_id) if entry.start_offset < end]

    async def check_isrs(self) -> None:
        """What each broker does periodically."""
        while True:
            for broker in self.brokers.values():
                broker.services.replicas.shrink_isrs(broker.clock.now_ms())
            await asyncio.sleep(0.05)

    async def until_identical(self, *broker_ids: int) -> None:
        """Wait until these replicas have the same bytes, leader epochs and high watermark."""
        first, *others = broker_ids or tuple(self.brokers)

        def are_identical() -> bool:
            log = self.partition(first).log
            return all(
                self.partition(other).log.log_end_offset == log.log_end_offset
                and self.partition(other).log.high_watermark == log.high_watermark == log.log_end_offset
                for other in others
            )

        await until(are_identical)
        for other in others:
            assert self.content(other) == self.content(first)
            assert self.written_epochs(other) == self.written_epochs(first)


def run_replicated(
    directory: Path,
    scenario: Callable[[Replicated], Awaitable[None]],
    count: int = 3,
    settings: tuple[str, ...] = (),
) -> None:
    """Start so many brokers, run the scenario, and stop them."""

    async def run() -> None:
        replicated = Replicated(directory, count, settings)
        try:
            for broker_id in replicated.replicas:
                await replicated.start(broker_id)
            checking = asyncio.ensure_future(replicated.check_isrs())
            await asyncio.wait_for(scenario(replicated), 2 * PATIENCE_S)
            checking.cancel()
        finally:
            await replicated.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
