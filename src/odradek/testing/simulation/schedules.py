"""One seeded run: clients work while faults come and go; then everything is healed and must be right."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odradek.common.ids import TopicPartition
from odradek.coordinator.partitioning import partition_for
from odradek.protocol.messages import CreateTopicsRequest
from odradek.testing.history.operations import End, History, WholeRead
from odradek.testing.history.verdict import check
from odradek.testing.simulation.cluster import SimulatedCluster, simulate
from odradek.testing.simulation.end_checks import EndChecks
from odradek.testing.simulation.faults import Faults
from odradek.testing.simulation.topic_faults import CREATE_TOPICS_VERSION, TopicFaults
from odradek.testing.simulation.transactions import (
    LONGEST_LATENESS_S,
    CommittedReader,
    TransactionalProducer,
)
from odradek.testing.simulation.virtual_time import process_now_ms
from odradek.testing.simulation.workload import (
    REQUEST_TIMEOUT_S,
    Client,
    SimulatedProducer,
    SimulatedReader,
)
from odradek.transactions.partitions import TRANSACTION_STATE

TOPIC = "orders"
AUDITOR, COMMITTED_AUDITOR = "auditor", "committed-auditor"
"""The readers that read everything at the end; the second one with read_committed."""
LAST_REQUESTS_S = LONGEST_LATENESS_S + REQUEST_TIMEOUT_S
"""Until the last requests of clients that have stopped have arrived, late ones included."""
HEALED_S = 120.0
TRANSACTIONS_EVERY = 5
"""One schedule of so many has transactional producers, too."""
SETTINGS = {
    "replica.lag.time.max.ms": "4000",
    "zookeeper.session.timeout.ms": "6000",
    "leader.imbalance.check.interval.seconds": "20",
    "log.flush.interval.ms": "2000",
    "controlled.shutdown.max.retries": "2",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
}


@dataclass
class Report:
    """What one schedule did, and what it found; no problems if all was right."""

    seed: int
    faults: Counter[str]
    problems: list[str] = field(default_factory=list)
    acknowledged: int = 0
    unknown: int = 0
    elections: int = 0
    committed: int = 0
    """Transactions that were committed; others were aborted, or nobody knows."""
    transactions: int = 0
    virtual_s: float = 0.0


def run_schedule(
    seed: int,
    directory: Path,
    *,
    brokers: int = 3,
    partitions: int = 2,
    faults: int = 4,
    transactions: bool | None = None,
) -> Report:
    """Run the schedule of a seed; `transactions`: whether there are any, None if the seed decides."""
    if transactions is None:
        transactions = seed % TRANSACTIONS_EVERY == 0

    async def scenario(cluster: SimulatedCluster) -> Report:
        return await _Schedule(cluster, seed, partitions, faults, transactions=transactions).run()

    with _logged_bugs() as bugs:
        report = simulate(scenario, seed=seed, directory=directory, brokers=brokers, settings=SETTINGS)
    report.problems += bugs
    return report


class _BugHandler(logging.Handler):
    """Collects what is logged with a traceback: exceptions that nobody expected."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Called by the logging package."""
        if record.exc_info and record.exc_info[0] is not None:
            self.found.append(f"logged: {record.getMessage()}: {record.exc_info[1]!r}")


@contextlib.contextmanager
def _logged_bugs() -> Iterator[list[str]]:
    handler = _BugHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield handler.found
    finally:
        logging.getLogger().removeHandler(handler)


class _Schedule:
    def __init__(
        self, cluster: SimulatedCluster, seed: int, partitions: int, faults: int, *, transactions: bool
    ) -> None:
        self.cluster = cluster
        self.seed = seed
        self.partitions = [TopicPartition(TOPIC, index) for index in range(partitions)]
        self.fault_count = faults
        self.has_transactions = transactions
        self.faults = Faults(cluster, self.partitions)
        self.topics = TopicFaults(cluster, self.faults, self.partitions)
        self.faults.add(self.topics.kinds())
        if transactions:
            self.faults.add(
                {
                    "hold markers back": (4, self._hold_markers_back),
                    "repeat marker": (8, self._repeat_marker),
                }
            )
        self.history = History()
        self.workers: list[asyncio.Task[Any]] = []
        self.transactional: list[TransactionalProducer] = []
        self.leaders: dict[TopicPartition, int] = {}
        self.elections = 0

    async def run(self) -> Report:
        await self.cluster.start()
        await self.cluster.client_process("admin").create_task(self._create_topic())
        for partition in self.partitions:
            self._start_clients(partition)
        if self.has_transactions:
            self._start_transactions()
        for _ in range(self.fault_count):
            await self._wait(0.5 + self.cluster.seeded.random() * 5)
            await self.faults.inject()
        await self._wait(10)
        while not self.elections:
            await self.faults.kill_leader(self.partitions[0])
            await self._wait(10)
        await self.faults.heal_due(everything=True)
        report = Report(self.seed, self.faults.done, elections=self.elections)
        await self._check_everything(report)
        report.virtual_s = asyncio.get_running_loop().time()
        return report

    async def _wait(self, seconds: float) -> None:
        end_s = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end_s:
            await asyncio.sleep(0.1)
            await self.faults.heal_due()
            self._count_elections()

    def _count_elections(self) -> None:
        """A leader that is another one than before was elected; one that came back in between is not seen."""
        for partition in self.partitions:
            state = self.faults.state(partition)
            if state is not None and state.leader >= 0:
                self.elections += self.leaders.get(partition, state.leader) != state.leader
                self.leaders[partition] = state.leader

    async def _create_topic(self) -> None:
        connections = self.cluster.connections("admin")
        config = CreateTopicsRequest.Topics.Configs(name="min.insync.replicas", value="2")
        topic = CreateTopicsRequest.Topics(
            name=TOPIC,
            num_partitions=len(self.partitions),
            replication_factor=len(self.cluster.brokers),
            configs=[config],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        controller_id = max(self.faults.controller_id(), 0)
        response: Any = await connections.send(controller_id, request, version=CREATE_TOPICS_VERSION)
        assert response.topics[0].error_code == 0, str(response)

    async def _hold_markers_back(self) -> None:
        await self.faults.hold_markers_back()

    async def _repeat_marker(self) -> None:
        producer = self.cluster.seeded.choice(self.transactional)
        count = len([one for one in self.faults.other_partitions() if one.topic == TRANSACTION_STATE])
        if not count:
            return
        index = partition_for(producer.name, count)
        state = self.faults.state(TopicPartition(TRANSACTION_STATE, index))
        process = self.cluster.client_process(f"zombie-of-{producer.name}")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(10):
                if state is not None and await process.create_task(
                    producer.repeat_marker(state.leader_epoch)
                ):
                    self.faults.done["repeat marker"] += 1

    def _client(
        self, kind: type, name: str, partition: TopicPartition, history: History | None = None
    ) -> Any:
        arguments = (
            name,
            partition.topic,
            partition.partition,
            self.cluster.connections(name),
            list(self.cluster.brokers),
            self.cluster.seeded,
            self.history if history is None else history,
        )
        return kind(*arguments)

    def _start_clients(self, partition: TopicPartition) -> None:
        for kind, name in ((SimulatedProducer, "producer"), (SimulatedReader, "reader")):
            client = self._client(kind, f"{name}-{partition.partition}", partition)
            self.workers.append(self.cluster.client_process(client.name).create_task(client.run()))

    def _start_transactions(self) -> None:
        """A producer of each protocol, and a reader of what they commit."""
        for protocol in (1, 2):
            name = f"transactions-v{protocol}"
            process = self.cluster.client_process(name)
            clients = [self._client(Client, name, partition) for partition in self.partitions]
            producer = TransactionalProducer(clients, process, protocol)
            self.transactional.append(producer)
            self.workers.append(process.create_task(producer.run()))
        for partition in self.partitions:
            reader = self._client(CommittedReader, f"committed-reader-{partition.partition}", partition)
            self.workers.append(self.cluster.client_process(reader.name).create_task(reader.run()))

    async def _check_everything(self, report: Report) -> None:
        if not await self._until_whole():
            states = [self.faults.state(partition) for partition in self.partitions]
            report.problems.append(f"not whole {HEALED_S:g} s after everything was healed: {states}")
            return
        for worker in self.workers:
            worker.cancel()
        checks = EndChecks(self.cluster, self.faults, self.partitions)
        await asyncio.sleep(LAST_REQUESTS_S)
        await checks.wait_until_settled(transactions=self.has_transactions)
        for partition in self.partitions:
            checks.compare_replicas(partition, checks.end_offset(partition))
            for reader in self._auditors(partition):
                await checks.read(reader, partition)
        checks.compare_other_partitions()
        self.history.add(WholeRead(AUDITOR, process_now_ms(), TOPIC))
        for producer in self.transactional:
            await checks.check_committed_offset(producer)
        verdict = check(self.history, seed=self.seed)
        report.problems += checks.problems
        for found in verdict.violations.values():
            report.problems += [str(violation) for violation in found]
        report.acknowledged = verdict.counts.acknowledged
        report.unknown = verdict.counts.unknown
        ends = [one.end for one in self.history.transactions]
        report.transactions, report.committed = len(ends), ends.count(End.COMMITTED)

    async def _until_whole(self) -> bool:
        for _ in range(int(HEALED_S * 10)):
            if self.faults.is_whole():
                return True
            await asyncio.sleep(0.1)
        return False

    def _auditors(self, partition: TopicPartition) -> list[SimulatedReader]:
        readers = [self._client(SimulatedReader, AUDITOR, partition)]
        if self.transactional:
            readers.append(self._client(CommittedReader, COMMITTED_AUDITOR, partition))
        return readers
