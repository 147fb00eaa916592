"""The transaction coordinator is killed at each request: its transaction is committed once and whole."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.committed_readers import librdkafka
from faults.transaction_client import PATIENCE_SECONDS, ClientWithOffsets
from odradek.common.error_codes import ErrorCode
from odradek.testing import Cluster

pytestmark = pytest.mark.slow

SEED = 20261119
LONGEST_DELAY_SECONDS = 0.02
TOPIC, PARTITIONS, GROUP = "orders", range(3), "billing"
SETTINGS = {
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
    "min.insync.replicas": 1,
    "transaction.state.log.min.isr": 1,
}


Step = Callable[[ClientWithOffsets, int], ErrorCode]


def produce(client: ClientWithOffsets, number: int) -> ErrorCode:
    return max(client.produce(TOPIC, partition, b"%d" % number) for partition in PARTITIONS)


STEPS: dict[str, Step] = {
    "InitProducerId": lambda client, _: client.init(),
    "AddPartitionsToTxn": lambda client, _: client.add(TOPIC, *PARTITIONS),
    "Produce": produce,
    "AddOffsetsToTxn": lambda client, _: client.add_offsets(),
    "TxnOffsetCommit": lambda client, number: client.commit_offset(TOPIC, number),
    "EndTxn": lambda client, _: client.end(commit=True),
}
OF_V1_ONLY = ("AddPartitionsToTxn", "AddOffsetsToTxn")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    store = {"odradek.coordination": f"sqlite:{tmp_path / 'coordination.db'}"}
    with Cluster(SETTINGS | store, process=True, brokers=3) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        (made,) = admin.create_topics([NewTopic(TOPIC, len(PARTITIONS), 3)]).values()
        made.result(PATIENCE_SECONDS)
        yield running


@pytest.mark.parametrize("is_v2", [False, True], ids=["v1", "v2"])
def test_a_coordinator_that_dies_at_any_request_loses_and_tears_nothing(
    cluster: Cluster, is_v2: bool
) -> None:
    chance = random.Random(SEED)
    client = ClientWithOffsets(cluster, "id", GROUP, is_v2=is_v2)
    steps = {name: step for name, step in STEPS.items() if not (is_v2 and name in OF_V1_ONLY)}
    client.init()
    for number, dies_at in enumerate(steps):
        for name, step in steps.items():
            if name == dies_at:
                coordinator = client.coordinator()
                killing = threading.Timer(
                    chance.uniform(0, LONGEST_DELAY_SECONDS), kill, [cluster, coordinator]
                )
                killing.start()
            assert step(client, number) is ErrorCode.NONE, (name, number, SEED)
            if name == dies_at:
                killing.join()
        client.wait_for_state("CompleteCommit")

    rows = [str(number) for number in range(len(steps))]
    assert librdkafka(cluster.bootstrap, TOPIC, len(PARTITIONS), 3 * len(rows)) == [rows] * len(PARTITIONS)
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP})
    (committed,) = consumer.committed([TopicPartition(TOPIC, 0)], PATIENCE_SECONDS)
    consumer.close()
    assert committed.offset == len(rows) - 1


def kill(cluster: Cluster, broker_id: int) -> None:
    cluster.kill(broker_id)
    cluster.start(broker_id)
