"""Seeded simulations of a cluster: brokers die, hang and return, controllers are deposed, topics come and go.

While it runs, every transaction is watched: epochs only grow, and no partition state is written under a
controller epoch that another broker has already raised. In the end all brokers agree.
"""

from __future__ import annotations

import asyncio
import logging

import pytest

from cluster.simulated import SimulatedCluster
from cluster.virtual_time import run_in_virtual_time
from odradek.cluster.topics.new_topics import NewTopic
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.coordination import paths
from odradek.coordination.errors import StoreError
from odradek.coordination.payloads import (
    ControllerRegistration,
    PartitionStateNode,
    TopicAssignment,
    decode_controller_epoch,
    encode_partitions,
)
from odradek.coordination.store import SessionState
from odradek.coordination.znodes import Draft, Znode
from odradek.testing.memory_store import MemoryEnsemble

NAMES = ("a", "b", "c.d", "e")
STEPS = 60


class Watchdog:
    """Sees every transaction before it is committed, and objects to those that must not be."""

    def __init__(self, ensemble: MemoryEnsemble) -> None:
        self._ensemble = ensemble
        self._commit = ensemble.commit
        self.state_writes = 0
        ensemble.commit = self.commit  # type: ignore[method-assign]

    def commit(self, draft: Draft) -> None:
        for path, node in draft.changed.items():
            old = self._ensemble.find(path)
            if node is None or (old is not None and old.version == node.version and old.czxid == node.czxid):
                continue
            if path == paths.CONTROLLER_EPOCH and old is not None:
                assert decode_controller_epoch(node.payload) == decode_controller_epoch(old.payload) + 1
            if path.startswith(paths.TOPICS) and path.endswith("/state"):
                self._check_state(path, old, node)
        self._commit(draft)

    def _check_state(self, path: str, old: Znode | None, new: Znode) -> None:
        self.state_writes += 1
        written = PartitionStateNode.decode(new.payload)
        epoch_node = self._ensemble.find(paths.CONTROLLER_EPOCH)
        assert epoch_node is not None
        assert written.controller_epoch == decode_controller_epoch(epoch_node.payload), "a zombie wrote"
        assert written.isr, f"{path}: no replica is in sync"
        assert written.leader in (*written.isr, -1), f"{path}: the leader is not in sync"
        if old is not None:
            before = PartitionStateNode.decode(old.payload)
            assert written.leader_epoch >= before.leader_epoch, f"{path}: a leader epoch went back"
            same_leader = written.leader == before.leader
            assert same_leader or written.leader_epoch > before.leader_epoch, f"{path}: two in one epoch"


class RandomFaults:
    """One run: what may happen at each step, drawn by the seed."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.rng = cluster.rng
        self.wanted: set[str] = set()

    async def step(self) -> None:
        action = self.rng.choice(
            [
                self.create,
                self.create,
                self.delete,
                self.grow,
                self.kill,
                self.revive,
                self.revive,
                self.expire,
                self.hang,
                self.wake,
                self.depose,
                self.foreign_topic,
                self.prefer,
                self.propose,
                self.propose,
            ]
        )
        try:
            async with asyncio.timeout(2.0):
                await action()
        except (KafkaError, StoreError, TimeoutError):
            pass  # refused or stuck, as an administrator's request may be
        await asyncio.sleep(self.rng.choice([0.0, 0.001, 0.02, 0.3]))

    async def create(self) -> None:
        factor = self.rng.randint(1, len(self.cluster.live()))
        name = self.rng.choice(NAMES)
        await self.cluster.admin().create_topic(NewTopic(name, self.rng.randint(1, 3), factor))

    async def delete(self) -> None:
        await self.cluster.admin().delete_topic(self.rng.choice(NAMES))

    async def grow(self) -> None:
        await self.cluster.admin().create_partitions(self.rng.choice(NAMES), self.rng.randint(2, 5))

    async def kill(self) -> None:
        if len(self.cluster.live()) > 1:
            await self.rng.choice(self.cluster.live()).stop()

    async def revive(self) -> None:
        dead = [broker for broker in self.cluster.brokers.values() if not broker.is_alive]
        if dead:
            await self.rng.choice(dead).start()

    async def expire(self) -> None:
        store = self.rng.choice(self.cluster.live()).store
        if store.state is not SessionState.EXPIRED:
            store.expire()

    async def hang(self) -> None:
        store = self.rng.choice(self.cluster.live()).store
        if store.state is SessionState.CONNECTED:
            store.suspend()

    async def wake(self) -> None:
        for broker in self.cluster.live():
            if broker.store.state is SessionState.SUSPENDED:
                broker.store.resume() if self.rng.random() < 0.5 else broker.store.expire()

    async def depose(self) -> None:
        await self.intrude().delete(paths.CONTROLLER)

    async def foreign_topic(self) -> None:
        ids = [broker.broker_id for broker in self.cluster.live()]
        self.rng.shuffle(ids)
        await self.intrude().create(
            paths.topic("foreign"), b'{"version":1,"partitions":{"0":%s}}' % str(ids).encode()
        )

    async def prefer(self) -> None:
        elected = tuple(TopicPartition(name, 0) for name in NAMES)
        await self.intrude().create(paths.PREFERRED_REPLICA_ELECTION, encode_partitions(elected))

    async def propose(self) -> None:
        await self.rng.choice(self.cluster.live()).propose_isrs()

    def intrude(self):
        return self.cluster.ensemble.open_session()

    async def recover(self) -> None:
        for broker in self.cluster.live():
            if broker.store.state is SessionState.SUSPENDED:
                broker.store.resume()
        for broker in self.cluster.brokers.values():
            if not broker.is_alive:
                await broker.start()
        self.cluster.loss = 0.0
        await self.cluster.settle(60.0)
        for broker in self.cluster.live():
            await broker.propose_isrs()
        await self.cluster.settle(10.0)


async def check_agreement(cluster: SimulatedCluster) -> None:
    store = cluster.ensemble.open_session()
    (controller,) = cluster.active_controllers()
    registered = ControllerRegistration.decode((await store.get(paths.CONTROLLER)).payload)
    assert registered.broker_id == controller.broker_id
    assert await store.children(paths.DELETE_TOPICS) == []
    assert await store.exists(paths.PREFERRED_REPLICA_ELECTION) is None
    assert [int(name) for name in await store.children(paths.BROKER_IDS)] == sorted(cluster.brokers)

    topics = {
        name: TopicAssignment.decode((await store.get(paths.topic(name))).payload)
        for name in await store.children(paths.TOPICS)
    }
    context = controller.node.controller.context
    assert context is not None
    assert set(context.assignments) == set(topics)
    for broker in cluster.live():
        assert broker.fatal is None
        assert set(broker.image.topics) == set(topics), f"broker {broker.broker_id} sees other topics"
        assert sorted(broker.image.brokers) == sorted(cluster.brokers)
        assert broker.image.controller_id == controller.broker_id
        hosted = {
            TopicPartition(name, index)
            for name, topic in topics.items()
            for index, one in topic.partitions.items()
            if broker.broker_id in one.replicas
        }
        assert set(broker.hosted) == hosted, f"broker {broker.broker_id} hosts other replicas"
    for name, topic in topics.items():
        assert topic.topic_id is not None
        for index, one in topic.partitions.items():
            await check_partition(cluster, TopicPartition(name, index), one.replicas, topic.topic_id.bytes)


async def check_partition(
    cluster: SimulatedCluster, partition: TopicPartition, replicas: tuple[int, ...], topic_id: bytes
) -> None:
    store = cluster.ensemble.open_session()
    node = await store.get(paths.partition_state(partition))
    state = PartitionStateNode.decode(node.payload)
    # Every broker is alive, so every ISR has a live member.
    assert state.leader in state.isr, f"{partition} has no leader"
    assert set(state.isr) == set(replicas), f"{partition}: all live replicas are in sync by now"
    for broker in cluster.live():
        reported = broker.image.partition(*partition)
        assert reported is not None
        assert (reported.leader, reported.leader_epoch) == (state.leader, state.leader_epoch), partition
        assert (reported.isr, reported.replicas, reported.offline_replicas) == (state.isr, replicas, ())
        assert reported.partition_epoch == node.stat.version
        if broker.broker_id in replicas:
            own = broker.hosted[partition]
            assert (own.state.leader, own.state.leader_epoch) == (state.leader, state.leader_epoch)
            assert own.topic_id == topic_id


async def simulate(seed: int) -> int:
    cluster = await SimulatedCluster.start(4, seed=seed, loss=0.1)
    watchdog = Watchdog(cluster.ensemble)
    faults = RandomFaults(cluster)
    for _ in range(STEPS):
        await faults.step()
    await faults.recover()
    await check_agreement(cluster)
    await cluster.stop()
    return watchdog.state_writes


def simulate_without_error(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """An assertion inside a broker or a transaction, a bug, a forbidden transition: all end in the log."""
    with caplog.at_level(logging.ERROR):
        assert run_in_virtual_time(simulate(seed)) > 0
    assert caplog.text == ""


@pytest.mark.parametrize("seed", range(12))
def test_after_random_faults_all_brokers_agree(seed, caplog):
    simulate_without_error(seed, caplog)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 200))
def test_after_random_faults_of_many_seeds_all_brokers_agree(seed, caplog):
    simulate_without_error(seed, caplog)
