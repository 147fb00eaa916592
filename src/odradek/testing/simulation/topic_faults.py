"""Faults of a schedule that topics suffer: deleted, created, replaced, grown and reassigned meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.coordination import paths
from odradek.coordination.errors import StoreError
from odradek.coordination.payloads import Replicas, TopicAssignment, encode_partitions
from odradek.coordination.store import Delete
from odradek.net.broker_connection import RequestFailed
from odradek.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from odradek.testing.history.operations import History
from odradek.testing.simulation.cluster import SimulatedCluster
from odradek.testing.simulation.faults import Fault, Faults
from odradek.testing.simulation.virtual_time import SimulatedProcess
from odradek.testing.simulation.workload import SimulatedProducer

OTHER_TOPIC = "other"
"""Deleted and created again."""
CREATE_TOPICS_VERSION = 7
DELETE_TOPICS_VERSION = 6
CREATE_PARTITIONS_VERSION = 3
REASSIGN_VERSION = 0
MOST_PARTITIONS = 3
LONGEST_REASSIGNMENT_S = 8.0


class TopicFaults:
    """Changes topics through the brokers and beside them. Owned by the schedule."""

    def __init__(
        self, cluster: SimulatedCluster, faults: Faults, partitions: Sequence[TopicPartition]
    ) -> None:
        """`partitions`: those that clients write to."""
        self._cluster = cluster
        self._faults = faults
        self._partitions = partitions
        self._count = 0
        self._moving_back: dict[TopicPartition, asyncio.Task[None]] = {}

    def kinds(self) -> Mapping[str, tuple[int, Fault]]:
        """By name, with the weights."""
        return {
            "recreate topic": (3, self._recreate_topic),
            "replace topic": (3, self._replace_topic),
            "grow topic": (2, self._grow_topic),
            "reassign": (3, self._reassign),
            "elect preferred leaders": (2, self._elect_preferred_leaders),
        }

    async def _recreate_topic(self) -> None:
        """Delete a second topic, if it exists, create it again, and write to it."""
        self._faults.done["recreate topic"] += 1
        process = self._next_process("admin")
        with contextlib.suppress(RequestFailed, TimeoutError):
            async with asyncio.timeout(20):
                await process.create_task(self._write_anew(process.name))

    async def _write_anew(self, name: str) -> None:
        connections = self._cluster.connections(name)
        delete = DeleteTopicsRequest(topics=[DeleteTopicsRequest.Topics(name=OTHER_TOPIC)], timeout_ms=5000)
        await connections.send(self._some_controller(), delete, version=DELETE_TOPICS_VERSION, timeout_s=6)
        while self._partitions_of_other_topic():
            await asyncio.sleep(0.2)
        topic = CreateTopicsRequest.Topics(
            name=OTHER_TOPIC, num_partitions=1, replication_factor=len(self._cluster.up())
        )
        create = CreateTopicsRequest(topics=[topic], timeout_ms=5000)
        await connections.send(self._some_controller(), create, version=CREATE_TOPICS_VERSION, timeout_s=6)
        producer = self._producer(name)
        for _ in range(self._cluster.seeded.randint(1, 5)):
            await producer.send_batch(1)

    async def _replace_topic(self) -> None:
        """Another tool writes another topic of the same name into the store, while a replica is down.

        The store's nodes are deleted by hand, and no controller may know the old topic.
        """
        old = self._partitions_of_other_topic()
        sleeper = self._cluster.seeded.choice(list(self._cluster.brokers.values()))
        if not old or not self._faults.is_whole():
            return
        self._faults.done["replace topic"] += 1
        sleeper.kill()
        store = self._cluster.ensemble.open_session()
        root = paths.topic(OTHER_TOPIC)
        nodes = sorted(
            (one for one in self._cluster.ensemble.nodes if f"{one}/".startswith(f"{root}/")), reverse=True
        )
        await store.multi([Delete(one) for one in nodes])
        for broker in self._cluster.up():
            broker.kill()  # the old topic is in the memory of every controller
        for broker in self._cluster.brokers.values():
            if broker is not sleeper:
                await broker.start()
        replicas = [one.broker_id for one in self._cluster.brokers.values() if one is not sleeper]
        assignment = TopicAssignment(
            {0: Replicas((*replicas, sleeper.broker_id))}, UUID(bytes=self._cluster.seeded.randbytes(16))
        )
        await store.create(root, assignment.encode())
        process = self._next_process("replacer")
        producer = self._producer(process.name)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(20):
                await process.create_task(producer.send_batch(1))
        sleeper.start()

    def _partitions_of_other_topic(self) -> list[TopicPartition]:
        return [one for one in self._faults.other_partitions() if one.topic == OTHER_TOPIC]

    def _some_controller(self) -> int:
        return max(self._faults.controller_id(), 0)

    async def _elect_preferred_leaders(self) -> None:
        with contextlib.suppress(StoreError):  # an election is under way
            await self._cluster.ensemble.open_session().create(
                paths.PREFERRED_REPLICA_ELECTION, encode_partitions(tuple(self._partitions))
            )
            self._faults.done["elect preferred leaders"] += 1

    async def _grow_topic(self) -> None:
        """Give the second topic one more partition, and write to it."""
        index = len(self._partitions_of_other_topic())
        if not 0 < index < MOST_PARTITIONS:
            return
        self._faults.done["grow topic"] += 1
        process = self._next_process("grower")
        with contextlib.suppress(RequestFailed, TimeoutError):
            async with asyncio.timeout(20):
                await process.create_task(self._grow_to(index + 1, process.name))

    async def _grow_to(self, count: int, name: str) -> None:
        topic = CreatePartitionsRequest.Topics(name=OTHER_TOPIC, count=count)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=5000)
        connections = self._cluster.connections(name)
        controller_id = self._some_controller()
        await connections.send(controller_id, request, version=CREATE_PARTITIONS_VERSION, timeout_s=6)
        await self._producer(name, count - 1).send_batch(1)

    async def _reassign(self) -> None:
        """Move a partition that clients write to away from a broker; later back to all, in another order."""
        if not self._faults.is_whole():
            return
        self._faults.done["reassign"] += 1
        partition = self._cluster.seeded.choice(self._partitions)
        everywhere = list(self._cluster.brokers)
        fewer = self._cluster.seeded.sample(everywhere, max(len(everywhere) - 1, 2))
        process = self._next_process("reassigner")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await process.create_task(self._reassign_to(partition, fewer, process.name))
        again = self._cluster.seeded.sample(everywhere, len(everywhere))

        async def move_back() -> None:
            # Not awaited: it is refused until all brokers are back.
            back = self._next_process("reassigner")
            self._moving_back[partition] = back.create_task(self._reassign_to(partition, again, back.name))

        self._faults.heal_later(LONGEST_REASSIGNMENT_S, move_back)

    async def _reassign_to(self, partition: TopicPartition, replicas: list[int], name: str) -> None:
        """Ask the controller, whoever it is, until it has accepted."""
        row = AlterPartitionReassignmentsRequest.Topics
        topic = row(
            name=partition.topic,
            partitions=[row.Partitions(partition_index=partition.partition, replicas=replicas)],
        )
        request = AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=5000)
        connections = self._cluster.connections(name)
        while True:
            with contextlib.suppress(RequestFailed):
                response: Any = await connections.send(
                    self._some_controller(), request, version=REASSIGN_VERSION, timeout_s=6
                )
                rows = [row for topic in response.responses for row in topic.partitions]
                if rows and all(one.error_code == ErrorCode.NONE for one in (response, *rows)):
                    return
            await asyncio.sleep(0.5)

    def _next_process(self, name: str) -> SimulatedProcess:
        self._count += 1
        return self._cluster.client_process(f"{name}-{self._count}")

    def _producer(self, name: str, index: int = 0) -> SimulatedProducer:
        return SimulatedProducer(
            name,
            OTHER_TOPIC,
            index,
            self._cluster.connections(name),
            list(self._cluster.brokers),
            self._cluster.seeded,
            History(),
        )
