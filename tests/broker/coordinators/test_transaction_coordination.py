"""Where the markers of a transaction are sent, in which version; how much of the log a step takes."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from broker.conftest import Broker
from odradek.broker.coordinators.transaction_coordination import MarkerCluster, coordinate_transactions
from odradek.cluster.features import SUPPORTED, TRANSACTION_VERSION
from odradek.cluster.membership.brokers import Broker as RegisteredBroker
from odradek.common.ids import TopicPartition
from odradek.net.broker_versions import VERSIONS
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import encode_request
from odradek.protocol.messages import UpdateMetadataRequest, WriteTxnMarkersRequest, WriteTxnMarkersResponse
from odradek.transactions import operations
from odradek.transactions.markers import PendingEnd
from odradek.transactions.operations import Initialization, PartitionsRequest
from odradek.transactions.partitions import TRANSACTION_STATE
from odradek.transactions.transaction import Transaction, TransactionState

Topic = UpdateMetadataRequest.TopicStates

OURS = RegisteredBroker(1, features=SUPPORTED)
OLDER = RegisteredBroker(1, features={TRANSACTION_VERSION: (0, 1)})
WITHOUT_FEATURES = RegisteredBroker(1)
"""As Kafka 3.9 registers on ZooKeeper: it would close the connection at a version that it does not know."""


@pytest.mark.parametrize(
    ("peer", "version"), [(OURS, 2), (OLDER, 1), (WITHOUT_FEATURES, 1), (None, 1)], ids=str
)
def test_markers_are_sent_in_a_version_that_the_leader_knows(
    run: Any, peer: RegisteredBroker | None, version: int
) -> None:
    sent = []

    async def send(
        broker_id: int, request: Any, *, timeout_s: float, version: int | None = None, purpose: str = ""
    ) -> Any:
        number = VERSIONS[ApiKey.WRITE_TXN_MARKERS] if version is None else version
        assert encode_request(ApiKey.WRITE_TXN_MARKERS, number, 1, "", request)
        sent.append((broker_id, number, request.markers[0].transaction_version))
        return WriteTxnMarkersResponse()

    async def scenario(broker: Broker, _: Any) -> None:
        services = broker.services
        services.send_to_broker = send
        services.features._brokers = {} if peer is None else {1: peer}
        marker = WriteTxnMarkersRequest.Markers(producer_id=7, producer_epoch=1, transaction_version=2)
        await MarkerCluster(services).write_markers(
            1, WriteTxnMarkersRequest(markers=[marker]), is_retry=False
        )

    run(scenario)
    assert sent == [(1, version, 2 if version == 2 else 0)]


def test_markers_that_wait_for_a_leader_go_to_the_next_one_when_the_metadata_change(run: Any) -> None:
    sent: list[tuple[int, set[int]]] = []

    async def send(broker_id: int, request: Any, **_: Any) -> Any:
        topics = [topic for marker in request.markers for topic in marker.topics]
        sent.append((broker_id, {index for topic in topics for index in topic.partition_indexes}))
        await asyncio.Event().wait()

    async def scenario(broker: Broker, _: Any) -> None:
        services = broker.services
        services.send_to_broker = send
        service = coordinate_transactions(services)
        services.image.update(an_update(Topic(topic_name="orders", partition_states=[led(0, 1), led(1, 1)])))
        for index in (0, 1):
            open_one = Transaction(
                f"t{index}", index, 60_000, partitions=frozenset([TopicPartition("orders", index)])
            )
            service.markers.write(PendingEnd(open_one, 0, 0, lambda: None))
            await asyncio.sleep(0.01)
        assert sent == [(1, {0})]
        services.image.update(an_update(Topic(topic_name="orders", partition_states=[led(1, 2)])))
        await asyncio.sleep(0.01)
        assert sent == [(1, {0}), (2, {1})]
        service.close()

    run(scenario)


def led(index: int, leader: int) -> Any:
    return UpdateMetadataRequest.TopicStates.PartitionStates(partition_index=index, leader=leader)


def an_update(topic: Any) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(topic_states=[topic])


def test_very_large_transactions_time_out_whatever_a_batch_may_hold(run: Any) -> None:
    partitions = frozenset(TopicPartition("orders", index) for index in range(300))
    names = [f"t{number}" for number in range(20)]

    async def scenario(broker: Broker, _: Any) -> None:
        broker.services.store = lambda: broker.store
        broker.host(TRANSACTION_STATE, max_message_bytes=5_000)
        first = coordinate_transactions(broker.services)
        first.runtime.lead(0, 0)
        for producer_id, name in enumerate(names):
            begun = await first.runtime.run(0, partial(_begin, Initialization(name, 1), producer_id))
            await first.runtime.run(0, partial(_add, PartitionsRequest(name, begun.producer, partitions)))
        first.close()
        await asyncio.sleep(0.01)

        second = coordinate_transactions(broker.services)
        second.runtime.lead(0, 0)
        while not (states := second.runtime.loaded_states()):
            await asyncio.sleep(0.01)
        # Nobody knows the topic, so that no partition needs a marker.
        while {one.state for one in states[0].transactions.values()} != {TransactionState.COMPLETE_ABORT}:
            await asyncio.sleep(0.01)
        second.close()

    run(scenario)


def _begin(wanted: Initialization, producer_id: int, state: Any, now_ms: int) -> Any:
    return operations.initialize(state, wanted, producer_id, now_ms)


def _add(wanted: PartitionsRequest, state: Any, now_ms: int) -> Any:
    return operations.add_partitions(state, wanted, now_ms)
