"""Partitions get other replicas: by request and by node, over a change of controllers, cancelled, refused."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.simulated import SimulatedCluster
from cluster.virtual_time import run_in_virtual_time
from odradek.cluster.controller.state.context import ReplicaAssignment
from odradek.cluster.topics.new_topics import NewTopic
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.coordination import paths
from odradek.coordination.payloads import Replicas, TopicAssignment, encode_reassignment
from odradek.coordination.store import Create

from ..test_controller import a_cluster, controller_of, state_of

T0 = TopicPartition("t", 0)


async def assignment_of(cluster: SimulatedCluster) -> Replicas:
    node = await cluster.live()[0].store.get(paths.topic("t"))
    return TopicAssignment.decode(node.payload).partitions[0]


async def reassign(cluster: SimulatedCluster, target: tuple[int, ...] | None, **options: Any) -> ErrorCode:
    controller = controller_of(cluster).node.controller
    results = await controller.alter_reassignments({T0: target}, **options)
    assert isinstance(results, dict)
    return results[T0].error


async def catch_up(cluster: SimulatedCluster, rounds: int = 3) -> None:
    """Have the leaders take every live replica into the ISR."""
    for _ in range(rounds):
        await cluster.settle()
        for broker in cluster.live():
            await broker.propose_isrs()
    await cluster.settle()


def test_replicas_are_added_and_the_others_removed_once_all_are_in_sync():
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [0, 1]}))
        assert await reassign(cluster, (2, 1)) is ErrorCode.NONE
        await cluster.settle()

        assert await assignment_of(cluster) == Replicas((2, 1, 0), adding=(2,), removing=(0,))
        assert cluster.brokers[2].hosted[T0].state.is_new
        assert cluster.brokers[0].hosted[T0].state.replicas == [2, 1, 0]
        in_progress = await controller_of(cluster).node.controller.list_reassignments(None)
        assert in_progress[T0].adding == (2,)
        assert (await state_of(cluster)).leader == 0

        await catch_up(cluster)
        assert await assignment_of(cluster) == Replicas((2, 1))
        state = await state_of(cluster)
        assert (state.leader, set(state.isr)) == (2, {1, 2})
        assert T0 not in cluster.brokers[0].hosted
        assert {broker.image.partition("t", 0).replicas for broker in cluster.live()} == {(2, 1)}
        assert await controller_of(cluster).node.controller.list_reassignments(None) == {}
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_more_and_fewer_replicas():
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [0]}))
        assert await reassign(cluster, (0, 1, 2), allows_other_factor=False) is (
            ErrorCode.INVALID_REPLICATION_FACTOR
        )
        assert await reassign(cluster, (0, 1, 2)) is ErrorCode.NONE
        await catch_up(cluster)
        assert await assignment_of(cluster) == Replicas((0, 1, 2))
        assert await reassign(cluster, (1,)) is ErrorCode.NONE
        await catch_up(cluster)
        assert await assignment_of(cluster) == Replicas((1,))
        assert (await state_of(cluster)).isr == (1,)
        assert [T0 in broker.hosted for broker in cluster.live()] == [False, True, False]
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_cancelled_reassignment_leaves_the_replicas_of_before():
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [0, 1]}))
        assert await reassign(cluster, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        await reassign(cluster, (2, 1))
        await cluster.settle()
        assert await reassign(cluster, None) is ErrorCode.NONE
        await cluster.settle()
        # In the order of the longer list, as in Kafka.
        assert await assignment_of(cluster) == Replicas((1, 0))
        assert T0 not in cluster.brokers[2].hosted
        assert (await state_of(cluster)).isr == (0, 1)
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_target_may_be_replaced_while_the_former_one_is_under_way():
    async def scenario() -> None:
        cluster = await a_cluster(4, NewTopic("t", assignment={0: [0, 1]}))
        await reassign(cluster, (2, 1))
        await cluster.settle()
        assert await reassign(cluster, (3, 0)) is ErrorCode.NONE
        await cluster.settle()
        assert await assignment_of(cluster) == Replicas((3, 0, 1), adding=(3,), removing=(1,))
        assert T0 not in cluster.brokers[2].hosted
        await catch_up(cluster)
        assert await assignment_of(cluster) == Replicas((3, 0))
        await cluster.stop()

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("target", [(), (1, 1), (-1, 2), (7, 1)])
def test_impossible_targets_are_refused_and_nothing_changes(target):
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [0, 1]}))
        assert await reassign(cluster, target) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        unknown = TopicPartition("u", 0)
        results = await controller_of(cluster).node.controller.alter_reassignments({unknown: (0,)})
        assert results[unknown].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await assignment_of(cluster) == Replicas((0, 1))
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_reassignment_is_not_taken_back_if_only_the_new_replica_is_in_sync():
    async def scenario() -> None:
        cluster = await a_cluster(4, NewTopic("t", assignment={0: [1, 2]}))
        await reassign(cluster, (3, 2))
        await cluster.settle()
        await cluster.brokers[2].stop()  # the target cannot be completed
        await catch_up(cluster)
        await cluster.brokers[1].stop()
        await cluster.settle()
        assert (await state_of(cluster)).isr == (3,)
        assert await reassign(cluster, None) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert (await state_of(cluster)).leader == 3
        await cluster.brokers[2].start()
        await catch_up(cluster)
        assert await assignment_of(cluster) == Replicas((3, 2))
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_live_leader_keeps_its_replica_while_no_other_can_lead(caplog: pytest.LogCaptureFixture):
    async def scenario() -> None:
        cluster = await a_cluster(2, NewTopic("t", assignment={0: [0, 1]}))
        await cluster.brokers[1].stop()
        await cluster.settle()
        term = controller_of(cluster).node.controller._term
        assert term is not None
        term.context.assign(T0, ReplicaAssignment((1,)))
        await term._reassignments._remove(T0, [0])
        term.session.send_requests()
        await cluster.settle()

        assert (await state_of(cluster)).leader == 0
        assert T0 in cluster.brokers[0].hosted
        await cluster.stop()

    run_in_virtual_time(scenario())
    assert "t-0: the replicas on brokers [0] are kept" in caplog.text


def test_the_next_controller_continues_and_a_broker_that_starts_is_waited_for():
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [1]}))
        await reassign(cluster, (2,))
        await cluster.settle()
        await cluster.brokers[2].stop()
        await cluster.brokers[0].stop()  # the controller
        await catch_up(cluster)
        assert (await assignment_of(cluster)).adding == (2,)
        await cluster.brokers[2].start()
        await catch_up(cluster)
        assert await assignment_of(cluster) == Replicas((2,))
        assert T0 not in cluster.brokers[1].hosted
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_tool_may_write_the_node_and_sees_it_vanish():
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [0, 1]}))
        store = cluster.live()[1].store
        unknown = TopicPartition("u", 3)
        wanted = encode_reassignment({T0: (1, 2), unknown: (0,)})
        await store.multi([Create(paths.REASSIGN_PARTITIONS, wanted)])
        await cluster.settle()
        node = await store.get(paths.REASSIGN_PARTITIONS)
        assert node.payload == encode_reassignment({T0: (1, 2)})
        await catch_up(cluster)
        assert await store.exists(paths.REASSIGN_PARTITIONS) is None
        assert await assignment_of(cluster) == Replicas((1, 2))

        await store.multi([Create(paths.REASSIGN_PARTITIONS, b"no json")])
        await cluster.settle()
        assert await store.exists(paths.REASSIGN_PARTITIONS) is None
        await store.multi([Create(paths.REASSIGN_PARTITIONS, encode_reassignment({T0: (0, 2)}))])
        await catch_up(cluster)
        assert await assignment_of(cluster) == Replicas((0, 2))
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_topic_is_deleted_once_its_reassignment_is_over():
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [0, 1]}))
        await reassign(cluster, (2, 1))
        await cluster.settle()
        await cluster.admin().delete_topic("t")
        await cluster.settle()
        store = cluster.live()[0].store
        assert await store.exists(paths.topic("t")) is not None
        await catch_up(cluster)
        assert await store.exists(paths.topic("t")) is None
        assert [T0 in broker.hosted for broker in cluster.live()] == [False, False, False]
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_tool_that_changes_the_replicas_in_the_topics_node_changes_nothing_here():
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [0, 1]}))
        store = cluster.live()[0].store
        node = await store.get(paths.topic("t"))
        written = TopicAssignment.decode(node.payload)
        grown = {0: Replicas((2,)), 1: Replicas((2, 0))}
        await store.set(paths.topic("t"), written._replace(partitions=grown).encode())
        await cluster.settle()
        context = controller_of(cluster).node.controller.context
        assert context.assignment(T0).replicas == (0, 1)
        assert cluster.live()[0].image.partition("t", 1).leader == 2
        await cluster.stop()

    run_in_virtual_time(scenario())
