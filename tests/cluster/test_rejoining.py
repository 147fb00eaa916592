"""A broker that joins: over lost connections, ends of sessions and errors, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster.simulated import SimulatedBroker, SimulatedCluster
from cluster.virtual_time import run_in_virtual_time
from odradek.cluster.controller.controller import Controller
from odradek.coordination.errors import ConnectionLoss
from odradek.coordination.store import Operation, OperationResult
from odradek.testing.memory_store import MemoryEnsemble, MemoryStore


class LossyStore(MemoryStore):
    """The answer to each first write is lost: of every other one that, of the others the write too."""

    def __init__(self, ensemble: MemoryEnsemble, session_id: int) -> None:
        super().__init__(ensemble, session_id)
        self._seen: set[str] = set()
        self.losses = 0

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        key = repr([operation.path for operation in operations])
        if key in self._seen:
            return await super().multi(operations)
        self._seen.add(key)
        self.losses += 1
        if self.losses % 2:
            await super().multi(operations)
        raise ConnectionLoss("the test cut the connection")


class LossyEnsemble(MemoryEnsemble):
    """Its sessions lose writes."""

    def open_session(self) -> MemoryStore:
        self.zxid += 1
        store = LossyStore(self, self.zxid)
        self._sessions.append(store)
        return store


@pytest.mark.parametrize("first", [0, 1])
def test_a_start_survives_lost_connections(monkeypatch, first):
    async def scenario() -> None:
        monkeypatch.setattr("cluster.simulated.MemoryEnsemble", LossyEnsemble)
        if first:
            monkeypatch.setattr(LossyStore, "__init__", _beginning_with_a_lost_write)
        cluster = await SimulatedCluster.start(2)
        assert sorted(cluster.brokers[1].image.brokers) == [0, 1]
        assert all(broker.store.losses > 1 for broker in cluster.live())
        await cluster.stop()

    run_in_virtual_time(scenario())


def _beginning_with_a_lost_write(self: LossyStore, ensemble: MemoryEnsemble, session_id: int) -> None:
    MemoryStore.__init__(self, ensemble, session_id)
    self._seen, self.losses = set(), 1


def test_a_broker_joins_again_whatever_fails_meanwhile(monkeypatch, caplog):
    failures = [RuntimeError("a bug")]

    async def fail_once(self: SimulatedBroker) -> None:
        if failures and self.is_alive:
            raise failures.pop()

    monkeypatch.setattr(SimulatedBroker, "_load_configs", fail_once)
    run_in_virtual_time(rejoining())
    assert not failures
    assert "cannot join again" in caplog.text


def test_a_session_that_ends_when_everything_has_started_is_noticed(monkeypatch):
    start, ended = Controller.start, []

    async def start_and_expire(self: Controller) -> None:
        await start(self)
        if self._broker_id == 1 and not ended:
            ended.append(self._store)
            self._store.expire()

    async def scenario() -> None:
        monkeypatch.setattr(Controller, "start", start_and_expire)
        cluster = await SimulatedCluster.start(2)
        await cluster.settle()
        assert ended
        assert sorted(cluster.brokers[0].image.brokers) == [0, 1]
        assert cluster.brokers[1].store is not ended[0]
        await cluster.stop()

    run_in_virtual_time(scenario())


async def rejoining() -> None:
    cluster = await SimulatedCluster.start(2)
    epoch = cluster.brokers[1].node.broker_epoch
    cluster.brokers[1].store.expire()
    await cluster.settle(10)
    assert cluster.brokers[1].node.broker_epoch > epoch
    assert sorted(cluster.brokers[0].image.brokers) == [0, 1]
    await cluster.stop()
