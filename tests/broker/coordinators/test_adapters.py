"""A coordinator's topic on real partitions: what is committed, and what a change of leadership does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker.conftest import BROKER_ID, Broker
from odradek.broker.coordinators.adapters import InternalTopic, LoopTimer, follow_leadership
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordinator.result import CoordinatorRecord, ParkedResponse, Result
from odradek.coordinator.runtime import CoordinatorRuntime
from odradek.groups.classic_group import Group
from odradek.groups.records import group_metadata
from odradek.groups.settings import GroupSettings
from odradek.groups.state import GroupsState
from odradek.records.builder import build_batch_from_columns
from odradek.replication.partition import LeaderAndIsrState

TOPIC = "__consumer_offsets"
OTHER_ID = BROKER_ID + 1


def led(epoch: int, *in_sync: int, leader: int = BROKER_ID) -> LeaderAndIsrState:
    return LeaderAndIsrState(leader, epoch, in_sync or (BROKER_ID,), (BROKER_ID, OTHER_ID), epoch)


def a_topic(broker: Broker) -> InternalTopic:
    services = broker.services
    return InternalTopic(TOPIC, services.replicas, services.waiting_produces, services.pool, load_bytes=100)


def a_batch(*keys: bytes) -> bytearray:
    return build_batch_from_columns(list(keys), [b"value" for _ in keys], [1] * len(keys))


def a_runtime(broker: Broker) -> CoordinatorRuntime[GroupsState]:
    services = broker.services
    runtime = CoordinatorRuntime(
        a_topic(broker), LoopTimer(), broker.clock, lambda _: GroupsState(GroupSettings), commit_timeout_ms=50
    )
    services.leaderships[TOPIC] = follow_leadership(runtime, services.replicas, keeps_state=True)
    return runtime


async def error_of(asked: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        await asked
    return raised.value.error_code


def test_an_offset_is_committed_once_every_replica_in_sync_has_it(run):
    async def scenario(broker: Broker, _: Any) -> None:
        partition, topic = broker.host(TOPIC, state=led(0, BROKER_ID, OTHER_ID)), a_topic(broker)
        offset = topic.append(0, 0, a_batch(b"a", b"b"), 1)
        assert (offset, topic.end_offset(0), topic.is_committed(0, offset)) == (1, 2, False)
        waiting = asyncio.create_task(topic.wait_committed(0, offset, 20_000))
        await asyncio.sleep(0)
        assert not waiting.done()
        partition.become(led(0)._replace(partition_epoch=1))
        await waiting
        assert topic.is_committed(0, offset)

    run(scenario)


def test_a_wait_for_a_commit_ends_with_its_time_or_with_the_leadership(run):
    async def scenario(broker: Broker, _: Any) -> None:
        partition, topic = broker.host(TOPIC, state=led(0, BROKER_ID, OTHER_ID)), a_topic(broker)
        offset = topic.append(0, 0, a_batch(b"a"), 1)
        assert await error_of(topic.wait_committed(0, offset, 1)) is ErrorCode.REQUEST_TIMED_OUT
        waiting = asyncio.create_task(topic.wait_committed(0, offset, 20_000))
        await asyncio.sleep(0)
        partition.become(led(1, OTHER_ID, leader=OTHER_ID))
        assert await error_of(waiting) is ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(scenario)


def test_only_the_leader_of_that_epoch_may_append(run):
    async def scenario(broker: Broker, _: Any) -> None:
        broker.host(TOPIC, state=led(3))
        topic = a_topic(broker)
        for epoch in (2, 4):
            with pytest.raises(KafkaError) as raised:
                topic.append(0, epoch, a_batch(b"a"), 1)
            assert raised.value.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(scenario)


def test_the_log_is_read_in_pieces_of_whole_batches(run):
    async def scenario(broker: Broker, _: Any) -> None:
        broker.host(TOPIC, state=led(0))
        topic = a_topic(broker)
        for number in range(5):
            topic.append(0, 0, a_batch(b"%d" % number), 1)
        pieces = [piece async for piece in topic.read(0, topic.end_offset(0))]
        assert len(pieces) == 5
        assert all(b"%d" % number in piece for number, piece in enumerate(pieces))

    run(scenario)


def test_groups_stay_loaded_and_members_waiting_when_the_leader_stays_in_a_new_epoch(run):
    async def scenario(broker: Broker, _: Any) -> None:
        runtime = a_runtime(broker)
        partition = broker.host(TOPIC, state=led(0, BROKER_ID, OTHER_ID))
        record: CoordinatorRecord = group_metadata(Group("g"))
        parked = asyncio.create_task(
            runtime.run(0, lambda state, now_ms: Result(records=(record,), parked_under="member"))
        )
        await asyncio.sleep(0)

        partition.become(led(1, BROKER_ID))  # the follower has died
        assert runtime.leader_epoch(0) == 1
        state = await runtime.read(0, lambda state, _: state)
        assert list(state.groups) == ["g"]
        assert not parked.done()
        answers = (ParkedResponse("member", "joined"),)
        await runtime.run(0, lambda state, now_ms: Result(records=(record,), parked_responses=answers))
        assert await parked == "joined"

        partition.become(led(2, OTHER_ID, leader=OTHER_ID))
        assert runtime.partitions() == []

    run(scenario)


def test_leadership_loads_the_groups_and_its_end_drops_them(run):
    async def scenario(broker: Broker, _: Any) -> None:
        runtime = a_runtime(broker)
        partition = broker.host(TOPIC, state=led(0))
        assert runtime.partitions() == [0]
        record: CoordinatorRecord = group_metadata(Group("g"))
        await runtime.run(0, lambda state, now_ms: Result(records=(record,)))

        partition.become(led(1, OTHER_ID, leader=OTHER_ID))
        assert runtime.partitions() == []
        assert await error_of(runtime.read(0, lambda state, _: state)) is ErrorCode.NOT_COORDINATOR

        partition.become(led(2))
        loading = error_of(runtime.read(0, lambda state, _: state))
        assert await loading is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        while True:
            try:
                state = await runtime.read(0, lambda state, _: state)
                break
            except KafkaError:
                await asyncio.sleep(0.001)
        assert list(state.groups) == ["g"]

        broker.services.replicas.drop(partition.topic_partition)
        assert runtime.partitions() == []
        runtime.close()

    run(scenario)
