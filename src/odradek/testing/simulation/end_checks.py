"""The checks at the end of a schedule: every replica is compared, and everything is read once more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from odradek.broker.requests.services import Services
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.net.broker_connection import RequestFailed
from odradek.replication.partition import Partition
from odradek.testing.history.operations import End
from odradek.testing.history.replicas import Replica, differences
from odradek.testing.simulation.brokers import LARGEST_CLOCK_SKEW_MS, SimulatedBroker
from odradek.testing.simulation.cluster import SimulatedCluster
from odradek.testing.simulation.faults import Faults
from odradek.testing.simulation.transactions import (
    TRANSACTION_TIMEOUT_MS,
    EpochLost,
    TransactionalProducer,
)
from odradek.testing.simulation.workload import SimulatedReader
from odradek.transactions.partitions import TRANSACTION_STATE
from odradek.transactions.transaction import PREPARED, TransactionState

SETTLED_S = 10.0
"""How long it may take until every replica has all records, when nobody writes any more."""
TRANSACTIONS_DECIDED_S = (2 * TRANSACTION_TIMEOUT_MS + 2 * LARGEST_CLOCK_SKEW_MS) / 1000
"""How long it may take until transactions whose producers have stopped have timed out.

One coordinator may have begun a transaction by a clock that is early, and another one may end it by a clock
that is late.
"""


class EndChecks:
    """Finds what is wrong with a cluster that is healed and that no client writes to any more."""

    def __init__(
        self, cluster: SimulatedCluster, faults: Faults, partitions: Sequence[TopicPartition]
    ) -> None:
        """`partitions`: those that clients have written to."""
        self._cluster = cluster
        self._faults = faults
        self._partitions = partitions
        self.problems: list[str] = []

    async def wait_until_settled(self, *, transactions: bool) -> None:
        """Wait until nothing is on its way any more; a problem if that takes too long."""
        longest_s = SETTLED_S + transactions * TRANSACTIONS_DECIDED_S
        for _ in range(int(longest_s * 10)):
            unsettled = self._unsettled()
            if not unsettled:
                return
            await asyncio.sleep(0.1)
        self.problems += [f"{one}, {longest_s:g} s after the last request" for one in unsettled]

    def _unsettled(self) -> list[str]:
        found = [one for partition in self._partitions for one in self._behind(partition)]
        for partition in self._faults.other_partitions():
            if partition.topic == TRANSACTION_STATE:
                found += undecided(self._leader(partition), partition.partition)
        return found

    def _behind(self, topic_partition: TopicPartition) -> list[str]:
        leader = self._leader(topic_partition).replicas.get(*topic_partition)
        end_offset = leader.log.log_end_offset
        stable_offset = leader.log.last_stable_offset
        found = [] if stable_offset == end_offset else [f"{topic_partition}: stable up to {stable_offset}"]
        for broker in self._cluster.brokers.values():
            replica = self._replica(broker, topic_partition)
            if replica is not None and replica.log.log_end_offset != end_offset:
                found.append(
                    f"{topic_partition}: broker {broker.broker_id} ends at {replica.log.log_end_offset}, "
                    f"the leader at {end_offset}"
                )
        return found

    def _leader(self, partition: TopicPartition) -> Services:
        state = self._faults.state(partition)
        assert state is not None
        server = self._cluster.brokers[state.leader].server
        assert server is not None
        return server.services

    def _replica(self, broker: SimulatedBroker, partition: TopicPartition) -> Partition | None:
        return None if broker.server is None else broker.server.services.replicas.find(*partition)

    def compare_topic_ids(self, partition: TopicPartition) -> None:
        """All replicas must belong to one topic."""
        replicas = [self._replica(broker, partition) for broker in self._cluster.brokers.values()]
        ids = {replica.log.topic_id for replica in replicas if replica is not None}
        if len(ids) > 1:
            self.problems.append(f"{partition}: replicas of several topics: {sorted(map(str, ids))}")

    def compare_replicas(self, partition: TopicPartition, end_offset: int) -> None:
        """All replicas must be the same below this offset, and reach it."""
        replicas = [
            Replica(f"broker {broker.broker_id}", broker.disk.root / str(partition))
            for broker in self._cluster.brokers.values()
            if self._replica(broker, partition) is not None
        ]
        self.problems += [f"{partition}: {one}" for one in differences(replicas, end_offset)]

    def compare_other_partitions(self) -> None:
        """Compare the replicas of all partitions but those of the clients."""
        for partition in self._faults.other_partitions():
            self.compare_topic_ids(partition)
            # The topics of the coordinators may be written at this moment.
            log = self._leader(partition).replicas.get(*partition).log
            self.compare_replicas(partition, log.high_watermark)

    def end_offset(self, partition: TopicPartition) -> int:
        """The log end offset of a partition's leader."""
        return self._leader(partition).replicas.get(*partition).log.log_end_offset

    async def read(self, reader: SimulatedReader, partition: TopicPartition) -> None:
        """Read a partition from its beginning to its end."""
        end_offset = self.end_offset(partition)
        process = self._cluster.client_process(reader.name)
        try:
            async with asyncio.timeout(30):
                await process.create_task(reader.read_to(end_offset))
        except (TimeoutError, RequestFailed):
            self.problems.append(
                f"{partition}: {reader.name} reads to {reader.position}, not to its end {end_offset}"
            )

    async def check_committed_offset(self, producer: TransactionalProducer) -> None:
        """The offset that a group has committed must not be one of an aborted transaction."""
        process = self._cluster.client_process(producer.name)
        try:
            async with asyncio.timeout(60):
                offset = await process.create_task(producer.committed_offset())
        except (TimeoutError, EpochLost):
            self.problems.append(f"{producer.group}: its committed offset cannot be fetched")
            return
        if producer.ends.get(offset) is End.ABORTED:
            self.problems.append(f"{producer.group}: offset {offset} of an aborted transaction")


def undecided(coordinator: Services, state_partition: int) -> list[str]:
    """The transactions of a coordinator that are open, or whose markers are not written yet."""
    try:
        state: Any = coordinator.transactions.runtime.state(state_partition)
    except KafkaError as error:
        return [f"{TRANSACTION_STATE}-{state_partition}: {error}"]
    return [
        f"transaction {one.transactional_id} is {one.state.label}"
        for one in state.transactions.values()
        if one.state is TransactionState.ONGOING or one.state in PREPARED
    ]
