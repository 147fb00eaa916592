"""Several simulated brokers over one store and one network, and processes for their clients."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from odradek.net.broker_connection import Address, BrokerConnections
from odradek.testing.memory_store import MemoryEnsemble
from odradek.testing.simulation.brokers import PORT, SimulatedBroker
from odradek.testing.simulation.network import SimulatedNetwork
from odradek.testing.simulation.transports import NetworkedLoop
from odradek.testing.simulation.virtual_time import SimulatedProcess, process_now_ms, run_in_virtual_time

Result = TypeVar("Result")


class SimulatedCluster:
    """Brokers by id, up or down. Owned by the simulation; made inside of `simulate`."""

    def __init__(self, seed: int, directory: Path, brokers: int, settings: Mapping[str, str]) -> None:
        self.seeded = random.Random(seed)
        self.network = SimulatedNetwork(self.seeded)
        self.ensemble = MemoryEnsemble(process_now_ms)
        self.brokers = {
            broker_id: SimulatedBroker(
                broker_id,
                directory=directory / f"broker-{broker_id}",
                network=self.network,
                ensemble=self.ensemble,
                seeded=self.seeded,
                settings=settings,
            )
            for broker_id in range(brokers)
        }

    def up(self) -> list[SimulatedBroker]:
        """The brokers whose processes exist."""
        return [broker for broker in self.brokers.values() if broker.is_up]

    async def start(self) -> None:
        """Start every broker, and wait until all are ready."""
        for starting in [broker.start() for broker in self.brokers.values()]:
            await starting

    def connections(self, client: str) -> BrokerConnections:
        """The connections of a client to brokers by id; to be used inside of its process."""
        return BrokerConnections(lambda broker_id: Address(self.brokers[broker_id].host, PORT), client)

    def client_process(self, name: str) -> SimulatedProcess:
        """A process for a client."""
        return SimulatedProcess(name)


def simulate(
    scenario: Callable[[SimulatedCluster], Awaitable[Result]],
    *,
    seed: int,
    directory: Path,
    brokers: int = 3,
    settings: Mapping[str, str] | None = None,
) -> Result:
    """Run `scenario(cluster)` in virtual time; the same seed gives the same run."""
    loop = NetworkedLoop()
    random.seed(seed)

    async def run() -> Result:
        cluster = SimulatedCluster(seed, directory, brokers, settings or {})
        loop.network = cluster.network
        return await scenario(cluster)

    with _seeded_urandom(seed):
        return run_in_virtual_time(run(), loop)


@contextlib.contextmanager
def _seeded_urandom(seed: int) -> Iterator[None]:
    """Have ids that are drawn at random depend on the seed alone."""
    real = os.urandom
    os.urandom = random.Random(seed).randbytes
    try:
        yield
    finally:
        os.urandom = real
