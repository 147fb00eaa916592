"""Brokers are killed at each step of a transaction: it ends one way, in all partitions, and others go on."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker.wire import WireClient
from faults.transaction_client import PATIENCE_SECONDS, TransactionClient
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.testing import Cluster

pytestmark = pytest.mark.slow

TOPIC, PARTITIONS = "orders", range(6)
SETTINGS = {
    "transaction.state.log.num.partitions": 3,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
    "min.insync.replicas": 1,
    "transaction.state.log.min.isr": 1,
}
SEED = 20261118


@pytest.fixture(scope="module", params=[1, 3], ids=["one-broker", "three-brokers"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    store = {"odradek.coordination": f"sqlite:{tmp_path_factory.mktemp('store') / 'coordination.db'}"}
    with Cluster(SETTINGS | store, process=True, brokers=request.param) as running:
        yield running


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    wanted = NewTopic(name, len(PARTITIONS), len(cluster.broker_ids))
    (made,) = admin.create_topics([wanted]).values()
    made.result(PATIENCE_SECONDS)
    return name


@pytest.fixture(params=[False, True], ids=["v1", "v2"])
def client(request: pytest.FixtureRequest, cluster: Cluster, topic: str) -> TransactionClient:
    made = TransactionClient(cluster, f"{topic}-id", is_v2=request.param)
    assert made.init() is ErrorCode.NONE
    return made


def values(cluster: Cluster, topic: str, until: str) -> list[list[str]]:
    """What a read_committed consumer reads in each partition, up to the value `until`, which is left out."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in PARTITIONS])
    found: list[list[str]] = [[] for _ in PARTITIONS]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(not row or row[-1] != until for row in found):
        assert time.monotonic() < deadline, f"partitions end before {until}: {found}"
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found[message.partition()].append(message.value().decode())
    consumer.close()
    return [row[:-1] for row in found]


def kill(cluster: Cluster, broker_id: int) -> None:
    cluster.kill(broker_id)
    cluster.start(broker_id)


def finish(client: TransactionClient, topic: str) -> None:
    """Begin again as a new producer would, and commit a last value in each partition."""
    assert client.init() is ErrorCode.NONE
    client.write(topic, PARTITIONS, b"last")
    assert client.end(commit=True) is ErrorCode.NONE


def test_an_open_transaction_continues_after_its_coordinator_was_killed(
    cluster: Cluster, topic: str, client: TransactionClient
) -> None:
    client.write(topic, PARTITIONS, b"before")
    kill(cluster, client.coordinator())
    assert client.state() == "Ongoing"
    client.write(topic, PARTITIONS, b"after")
    assert client.end(commit=True) is ErrorCode.NONE
    client.wait_for_state("CompleteCommit")

    finish(client, topic)
    assert values(cluster, topic, "last") == [["before", "after"]] * len(PARTITIONS)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_decided_transaction_is_finished_after_its_coordinator_was_killed(
    cluster: Cluster, topic: str, client: TransactionClient, commit: bool
) -> None:
    client.write(topic, PARTITIONS, b"x")
    coordinator = client.coordinator()
    assert client.end(commit=commit) is ErrorCode.NONE
    kill(cluster, coordinator)

    assert client.wait_for_state("CompleteCommit", "CompleteAbort") == (
        "CompleteCommit" if commit else "CompleteAbort"
    )
    finish(client, topic)
    assert values(cluster, topic, "last") == [["x"] if commit else []] * len(PARTITIONS)


def test_an_end_that_nobody_has_answered_is_all_or_nothing(
    cluster: Cluster, topic: str, client: TransactionClient
) -> None:
    chance = random.Random(SEED)
    for number in range(3):
        client.write(topic, PARTITIONS, f"{number}".encode())
        coordinator = client.coordinator()
        with WireClient(cluster.address(coordinator)) as wire:
            wire.send(ApiKey.END_TXN, client.end_version, client.end_request(commit=True))
            time.sleep(chance.uniform(0, 0.01))
            kill(cluster, coordinator)
        assert client.init() is ErrorCode.NONE

    finish(client, topic)
    found = values(cluster, topic, "last")
    assert all(row == found[0] for row in found), found


def test_a_leader_that_is_killed_gets_its_marker_later(
    cluster: Cluster, topic: str, client: TransactionClient
) -> None:
    client.write(topic, PARTITIONS, b"x")
    coordinator = client.coordinator()
    killed = next(
        (client.leader(topic, index) for index in PARTITIONS if client.leader(topic, index) != coordinator),
        coordinator,
    )
    cluster.kill(killed)
    starting = threading.Timer(0.5, cluster.start, [killed])
    starting.start()
    try:
        assert client.end(commit=True) is ErrorCode.NONE
        client.wait_for_state("CompleteCommit")
    finally:
        starting.join()
    finish(client, topic)
    assert values(cluster, topic, "last") == [["x"]] * len(PARTITIONS)


@pytest.mark.parametrize("cluster", [3], ids=["three-brokers"], indirect=True)
def test_a_topic_that_is_deleted_while_its_leader_is_dead_holds_up_no_end(
    cluster: Cluster, topic: str, client: TransactionClient
) -> None:
    client.write(topic, PARTITIONS, b"x")
    coordinator = client.coordinator()
    short_lived = f"{topic}-short-lived"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    (made,) = admin.create_topics([NewTopic(short_lived, 3, 1)]).values()
    made.result(PATIENCE_SECONDS)
    index = next(index for index in range(3) if client.leader(short_lived, index) != coordinator)
    killed = client.leader(short_lived, index)
    client.write(short_lived, range(index, index + 1), b"gone")
    cluster.kill(killed)
    assert client.end(commit=True) is ErrorCode.NONE
    (deleted,) = admin.delete_topics([short_lived], operation_timeout=PATIENCE_SECONDS).values()
    cluster.start(killed)
    deleted.result(PATIENCE_SECONDS)
    client.wait_for_state("CompleteCommit")

    finish(client, topic)
    assert values(cluster, topic, "last") == [["x"]] * len(PARTITIONS)


def test_an_abandoned_transaction_ends_by_its_timeout_over_a_kill(cluster: Cluster, topic: str) -> None:
    abandoned = TransactionClient(cluster, f"{topic}-abandoned", is_v2=False, timeout_ms=2000)
    abandoned.init()
    abandoned.write(topic, PARTITIONS, b"abandoned")
    other = TransactionClient(cluster, f"{topic}-other", is_v2=True)
    finish(other, topic)
    kill(cluster, abandoned.coordinator())

    # The abandoned transaction holds back the last stable offset until then.
    assert values(cluster, topic, "last") == [[]] * len(PARTITIONS)
    assert abandoned.wait_for_state("CompleteAbort") == "CompleteAbort"
    assert abandoned.end(commit=True) is ErrorCode.PRODUCER_FENCED


def test_a_late_end_does_not_touch_the_next_transaction_of_v2(cluster: Cluster, topic: str) -> None:
    client = TransactionClient(cluster, f"{topic}-id", is_v2=True)
    client.init()
    client.write(topic, PARTITIONS, b"first")
    late = client.end_request(commit=True)
    assert client.end(commit=True) is ErrorCode.NONE
    client.write(topic, PARTITIONS, b"second")
    with WireClient(cluster.address(client.coordinator())) as wire:
        assert wire.ask(ApiKey.END_TXN, 5, late).error_code == ErrorCode.PRODUCER_FENCED
    assert client.state() == "Ongoing"
    assert client.end(commit=False) is ErrorCode.NONE

    finish(client, topic)
    assert values(cluster, topic, "last") == [["first"]] * len(PARTITIONS)
