"""Links are cut and brokers stopped while transactions go on: the history holds, and readers get on again.

`ODRADEK_FAULT_SEED` chooses other moments and targets.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from broker.wire import WireClient
from faults.cluster.brokers import Brokers
from faults.cluster.worker import SILENT, Work, Worker
from faults.partitioned.brokers import brokers_in_network
from faults.partitioned.network import CLIENTS, Network
from faults.partitioned.transactional_workers import PRODUCERS, CommittedReader, FinalCommittedReader
from faults.undecided import wait_until_decided
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import FindCoordinatorRequest
from odradek.testing.history.operations import End, Fault, Outcome, Send, TransactionEnd
from odradek.testing.history.recorder import Recorder, load, now_ms
from odradek.testing.history.verdict import check

SEED = int(os.environ.get("ODRADEK_FAULT_SEED", "20261119"))
TOPIC, PARTITIONS = "history", 3
PATIENCE_SECONDS = 60.0
ABANDONED_TIMEOUT_MS = 2000
HOLD_SECONDS = (2.0, 5.0)
LEAST_TRANSACTIONS = 20


class Scene:
    """What a fault is done to; its producers' coordinators and its leaders are its targets."""

    def __init__(self, brokers: Brokers, network: Network, directory: Path, chance: random.Random) -> None:
        self.brokers = brokers
        self.network = network
        self.directory = directory
        self.chance = chance
        self.abandoned = 0

    def others(self, broker_id: int) -> list[int]:
        return [one for one in self.brokers.nodes if one != broker_id]

    def coordinator(self) -> int:
        """The broker that coordinates the transactions of one of the producers."""
        request = FindCoordinatorRequest(key=self.chance.choice(PRODUCERS).__name__, key_type=1)
        with WireClient(self.brokers.nodes[1].address) as client:
            return int(client.ask(ApiKey.FIND_COORDINATOR, 2, request).node_id)

    def leader(self) -> int:
        return self.brokers.leader(TOPIC, self.chance.randrange(PARTITIONS))

    def hold(self) -> None:
        time.sleep(self.chance.uniform(*HOLD_SECONDS))

    def abandon_transaction(self, recorder: Recorder) -> None:
        """Leave a transaction open that only its time-out ends; it is never committed."""
        self.abandoned += 1
        name = f"abandoned-{self.abandoned}"
        settings = {"transactional.id": name, "transaction.timeout.ms": ABANDONED_TIMEOUT_MS}
        producer = Producer({"bootstrap.servers": self.brokers.bootstrap, **settings}, logger=SILENT)
        producer.init_transactions(PATIENCE_SECONDS)
        producer.begin_transaction()
        producer.produce(TOPIC, name.encode(), partition=0)
        assert producer.flush(PATIENCE_SECONDS) == 0
        outcome = Outcome.UNKNOWN  # acknowledged, unless a retry came after its time-out
        send = Send(name, now_ms(), TOPIC, 0, 0, name, outcome, transaction=name)
        recorder.record(send, TransactionEnd(name, now_ms(), name, End.ABORTED))


def coordinator_cut_from_brokers(scene: Scene) -> str:
    """Its followers cannot fetch, and its markers do not arrive."""
    broker_id = scene.coordinator()
    scene.network.isolate(broker_id, scene.others(broker_id))
    scene.hold()
    scene.network.heal()
    return str(broker_id)


def coordinator_cut_from_clients(scene: Scene) -> str:
    broker_id = scene.coordinator()
    scene.network.cut((CLIENTS, broker_id))
    scene.hold()
    scene.network.heal()
    return str(broker_id)


def leader_cut_from_everybody(scene: Scene) -> str:
    broker_id = scene.leader()
    scene.network.isolate(broker_id, [*scene.others(broker_id), CLIENTS])
    scene.hold()
    scene.network.heal()
    return str(broker_id)


def coordinator_stopped(scene: Scene) -> str:
    """SIGSTOP: what is sent to it waits in its sockets."""
    broker_id = scene.coordinator()
    scene.brokers.pause(broker_id)
    scene.hold()
    scene.brokers.resume(broker_id)
    return str(broker_id)


FAULTS: tuple[Callable[[Scene], str], ...] = (
    coordinator_cut_from_brokers,
    coordinator_cut_from_clients,
    leader_cut_from_everybody,
    coordinator_stopped,
)


@pytest.fixture(params=[SEED, *(pytest.param(SEED + more, marks=pytest.mark.long) for more in (1, 2))])
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def scene(tmp_path: Path, seed: int) -> Iterator[Scene]:
    with brokers_in_network(tmp_path) as (brokers, network):
        history = tmp_path / "history"
        history.mkdir()
        brokers.create_topic(TOPIC, PARTITIONS, 3, min_insync_replicas="2")
        yield Scene(brokers, network, history, random.Random(seed))


@pytest.mark.slow
@pytest.mark.timeout(300)  # more than the suite allows, for a busy machine
def test_no_history_is_broken_and_readers_get_on_again(scene: Scene, seed: int) -> None:
    began = now_ms()
    bootstrap = scene.brokers.bootstrap
    workers: list[Worker] = [
        kind(Work("", kind.__name__, bootstrap, TOPIC, PARTITIONS), scene.directory, seed)
        for kind in PRODUCERS
    ]
    workers.append(CommittedReader(Work("", "reader", bootstrap, TOPIC, PARTITIONS), scene.directory))
    for worker in workers:
        worker.start()
    try:
        with Recorder(scene.directory, "faults") as recorder:
            for fault in scene.chance.sample(FAULTS, len(FAULTS)):
                scene.abandon_transaction(recorder)
                started = now_ms()
                target = fault(scene)
                recorder.record(Fault(fault.__name__, target, started, now_ms()))
                wait_until_decided(bootstrap, TOPIC, PARTITIONS)
    finally:
        for worker in workers:
            worker.stopping.set()
        for worker in workers:
            worker.stop(PATIENCE_SECONDS)
    wait_until_decided(bootstrap, TOPIC, PARTITIONS)
    last = FinalCommittedReader(Work("", "last", bootstrap, TOPIC, PARTITIONS), scene.directory)
    last.start()
    last.stop(PATIENCE_SECONDS)

    verdict = check(load(scene.directory), seed=seed, duration_ms=now_ms() - began)
    failures = [f"{worker.work.name}: {worker.failure}" for worker in (*workers, last) if worker.failure]
    assert verdict.is_good, "\n".join(verdict.lines())
    assert not failures, failures
    assert verdict.counts.transactions > LEAST_TRANSACTIONS, "\n".join(verdict.lines())
    assert verdict.counts.faults == {fault.__name__: 1 for fault in FAULTS}
