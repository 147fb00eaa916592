"""Requests of clients that arrive while a new leader epoch is being written wait until it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker.conftest import BROKER_ID, TOPIC_ID, Broker, Wire
from broker.wire import a_batch, a_fetch, the_row
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ProduceRequest
from odradek.replication.partition import LeaderAndIsrState
from odradek.replication.replica_manager import ReplicaSetup

ORDERS = TopicPartition("orders", 0)
OTHER_ID = BROKER_ID + 1
IDS, NAMES = 13, 9
BATCHES = 5


def state(leader: int, leader_epoch: int) -> LeaderAndIsrState:
    return LeaderAndIsrState(leader, leader_epoch, (leader,), (BROKER_ID, OTHER_ID), leader_epoch)


def begin(broker: Broker, wanted: LeaderAndIsrState) -> ReplicaSetup:
    """What a LeaderAndIsr request does before the disk is written."""
    return broker.services.replicas.begin_setup(ORDERS, TOPIC_ID, wanted, LogConfig(), now_ms=0)


def a_produce(sequence: int, version: int) -> ProduceRequest:
    batch = a_batch(b"%d" % sequence, producer_id=9, producer_epoch=0, base_sequence=sequence)
    row = ProduceRequest.TopicData
    topic = {"topic_id": TOPIC_ID} if version >= IDS else {"name": ORDERS.topic}
    part = row.PartitionData(index=ORDERS.partition, records=bytes(batch))
    return ProduceRequest(acks=1, timeout_ms=5000, topic_data=[row(partition_data=[part], **topic)])


async def answers(wire: Wire, version: int) -> list[tuple[ErrorCode, int]]:
    rows = [the_row((await wire.receive(ApiKey.PRODUCE, version))[1]) for _ in range(BATCHES)]
    return [(ErrorCode(row.error_code), row.base_offset) for row in rows]


@pytest.mark.parametrize("version", [NAMES, IDS], ids=["by-name", "by-id"])
@pytest.mark.parametrize("was_leader", [BROKER_ID, OTHER_ID], ids=["led-before", "followed-before"])
def test_pipelined_batches_wait_for_the_epoch_and_keep_their_order(
    run: Callable[[Any], None], was_leader: int, version: int
) -> None:
    async def scenario(broker: Broker, wire: Wire) -> None:
        partition = broker.host(state=state(was_leader, 0))
        setup = begin(broker, state(BROKER_ID, 1))
        for sequence in range(BATCHES):
            wire.send(ApiKey.PRODUCE, version, a_produce(sequence, version))
        answering = asyncio.create_task(answers(wire, version))
        await asyncio.sleep(0.05)
        assert not answering.done()
        assert partition.log.log_end_offset == 0
        setup.run()
        broker.services.replicas.complete_setup(setup)
        assert await answering == [(ErrorCode.NONE, offset) for offset in range(BATCHES)]
        assert partition.log.epochs.latest == 1

    run(scenario)


def test_what_waits_is_refused_if_the_epoch_cannot_be_written(run: Callable[[Any], None]) -> None:
    async def scenario(broker: Broker, wire: Wire) -> None:
        broker.host(state=state(OTHER_ID, 0))
        setup = begin(broker, state(BROKER_ID, 1))
        for sequence in range(BATCHES):
            wire.send(ApiKey.PRODUCE, NAMES, a_produce(sequence, NAMES))
        await asyncio.sleep(0.05)
        broker.services.replicas.cancel_setup(setup)
        assert await answers(wire, NAMES) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)] * BATCHES

    run(scenario)


def test_a_batch_does_not_overtake_one_that_was_refused_before_the_broker_led(
    run: Callable[[Any], None],
) -> None:
    async def scenario(broker: Broker, wire: Wire) -> None:
        broker.host(state=state(OTHER_ID, 0))
        refused = await wire.ask(ApiKey.PRODUCE, NAMES, a_produce(0, NAMES))
        broker.host(state=state(BROKER_ID, 1))
        following = await wire.ask(ApiKey.PRODUCE, NAMES, a_produce(1, NAMES))
        codes = [the_row(refused).error_code, the_row(following).error_code]
        assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
        for sequence in range(BATCHES):
            wire.send(ApiKey.PRODUCE, NAMES, a_produce(sequence, NAMES))
        assert await answers(wire, NAMES) == [(ErrorCode.NONE, offset) for offset in range(BATCHES)]

    run(scenario)


def test_a_fetch_of_the_new_epoch_waits_until_it_has_begun(run: Callable[[Any], None]) -> None:
    async def scenario(broker: Broker, wire: Wire) -> None:
        broker.host(state=state(OTHER_ID, 0))
        setup = begin(broker, state(BROKER_ID, 1))
        request = a_fetch(ORDERS.topic)
        request.topics[0].partitions[0].current_leader_epoch = 1
        wire.send(ApiKey.FETCH, 12, request)
        answering = asyncio.create_task(wire.receive(ApiKey.FETCH, 12))
        await asyncio.sleep(0.05)
        assert not answering.done()
        setup.run()
        broker.services.replicas.complete_setup(setup)
        assert the_row((await answering)[1]).error_code == ErrorCode.NONE

    run(scenario)


def test_other_partitions_are_served_meanwhile(run: Callable[[Any], None]) -> None:
    async def scenario(broker: Broker, wire: Wire) -> None:
        broker.host(state=state(BROKER_ID, 0))
        other = broker.host(partition=1)
        begin(broker, state(BROKER_ID, 1))
        request = a_produce(0, NAMES)
        request.topic_data[0].partition_data[0].index = 1
        response = await wire.ask(ApiKey.PRODUCE, NAMES, request)
        assert the_row(response).error_code == ErrorCode.NONE
        assert other.log.log_end_offset == 1

    run(scenario)
