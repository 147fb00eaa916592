"""Transactions of many clients, v1 and v2: what is committed is read whole and in order, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker.wire import WireClient
from compat.committed_readers import READERS, Reader, Values, java, librdkafka
from compat.transactional_clients import (
    FOREIGN_KINDS,
    JAVA_KINDS,
    KINDS,
    PATIENCE_SECONDS,
    FranzGo,
    JavaV2,
    Librdkafka,
    Ours,
    Refused,
    TransactionalProducer,
)
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeTransactionsRequest, FindCoordinatorRequest
from odradek.testing import Cluster

pytestmark = pytest.mark.slow

PARTITIONS = 3
NewProducer = Callable[..., TransactionalProducer]


@pytest.fixture(scope="module", params=[1, 3], ids=["one-broker", "three-brokers"])
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    settings = {
        "default.replication.factor": request.param,
        "transaction.state.log.num.partitions": 5,
        "offsets.topic.num.partitions": 3,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
    }
    with Cluster(settings, process=True, brokers=request.param) as cluster:
        yield cluster.bootstrap


@pytest.fixture(
    params=[
        *(pytest.param(kind, id=kind.name) for kind in KINDS),
        *(pytest.param(kind, id=kind.name, marks=pytest.mark.java) for kind in JAVA_KINDS),
        *(pytest.param(kind, id=kind.name, marks=pytest.mark.long) for kind in FOREIGN_KINDS),
    ]
)
def new_producer(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[NewProducer]:
    """Makes producers of one library, which are closed after the test."""
    made: list[TransactionalProducer] = []

    def make(transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer:
        made.append(request.param(bootstrap, transactional_id, timeout_ms))
        return made[-1]

    yield make
    for producer in made:
        producer.close()


@pytest.fixture
def new_topic(bootstrap: str, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (created,) = admin.create_topics([NewTopic(topic, PARTITIONS)]).values()
    created.result(PATIENCE_SECONDS)
    described = admin.list_topics(topic, PATIENCE_SECONDS)
    leaders = {row.leader for row in described.topics[topic].partitions.values()}
    assert leaders == set(described.brokers), "a transaction reaches every broker"
    return topic


def committed_values(bootstrap: str, topic: str, count: int) -> Values:
    return librdkafka(bootstrap, topic, PARTITIONS, count)


def group_offset(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    (committed,) = consumer.committed([TopicPartition(topic, 0)], PATIENCE_SECONDS)
    consumer.close()
    offset: int = committed.offset
    return offset


def test_only_committed_transactions_are_read_whole_and_in_order(
    bootstrap: str, new_topic: str, new_producer: NewProducer
) -> None:
    producer = new_producer(f"{new_topic}-id")
    for number in range(6):
        producer.begin()
        for partition in range(PARTITIONS):
            producer.send(new_topic, partition, f"{number}".encode())
        if number % 2:
            producer.abort()
        else:
            producer.commit()
    assert committed_values(bootstrap, new_topic, 9) == [["0", "2", "4"]] * PARTITIONS
    everything = librdkafka(bootstrap, new_topic, PARTITIONS, 18, isolation="read_uncommitted")
    assert everything == [["0", "1", "2", "3", "4", "5"]] * PARTITIONS


def test_every_reader_sees_whole_transactions_only(bootstrap: str, new_topic: str) -> None:
    expect_whole_transactions(bootstrap, new_topic, READERS)


@pytest.mark.java
@pytest.mark.parametrize(
    "bootstrap",
    [
        pytest.param(1, id="one-broker"),
        pytest.param(3, id="three-brokers", marks=pytest.mark.long),
    ],
    indirect=True,
)
def test_a_java_reader_sees_whole_transactions_only(bootstrap: str, new_topic: str) -> None:
    expect_whole_transactions(bootstrap, new_topic, [java])


def expect_whole_transactions(bootstrap: str, topic: str, readers: Sequence[Reader]) -> None:
    """Transactions of two producers alternate in each partition, one of them is open at the end."""
    for number, (commits, aborts) in enumerate([(Librdkafka, Ours), (Ours, Librdkafka)]):
        one, other = commits(bootstrap, f"{topic}-one-{number}"), aborts(bootstrap, f"{topic}-two-{number}")
        one.begin()
        other.begin()
        for place in range(2):
            for partition in range(PARTITIONS):
                other.send(topic, partition, b"aborted")
                one.send(topic, partition, f"{number}.{place}".encode())
        other.abort()
        one.commit()
        one.close()
        other.close()
    unfinished, later = Librdkafka(bootstrap, f"{topic}-open"), Ours(bootstrap, f"{topic}-later")
    unfinished.begin()
    unfinished.send(topic, 0, b"open")
    later.begin()
    for partition in range(PARTITIONS):
        later.send(topic, partition, b"later")
    later.commit()
    later.close()

    committed = ["0.0", "0.1", "1.0", "1.1"]
    expected = [committed, [*committed, "later"], [*committed, "later"]]
    for reader in readers:
        assert reader(bootstrap, topic, PARTITIONS, 14) == expected, reader.__name__
    unfinished.abort()
    unfinished.close()
    expected[0] = expected[1]
    for reader in readers:
        assert reader(bootstrap, topic, PARTITIONS, 15) == expected, reader.__name__


def test_offsets_take_effect_with_their_transaction(
    bootstrap: str, new_topic: str, new_producer: NewProducer
) -> None:
    producer = new_producer(f"{new_topic}-id")
    group = f"{new_topic}-group"
    for offset, commits in ((5, True), (9, False)):
        producer.begin()
        producer.send(new_topic, 0, b"x")
        producer.commit_offset(group, new_topic, offset)
        if commits:
            producer.commit()
        else:
            producer.abort()
    assert group_offset(bootstrap, group, new_topic) == 5


def test_a_zombie_is_fenced_and_its_transaction_aborted(
    bootstrap: str, new_topic: str, new_producer: NewProducer
) -> None:
    zombie = new_producer(f"{new_topic}-id")
    zombie.begin()
    zombie.send(new_topic, 0, b"zombie")
    heir = new_producer(f"{new_topic}-id")
    heir.begin()
    heir.send(new_topic, 0, b"heir")
    with pytest.raises(Refused):
        zombie.commit()
    heir.commit()

    assert committed_values(bootstrap, new_topic, 1) == [["heir"], [], []]


def test_a_transaction_that_is_open_for_too_long_is_aborted(
    bootstrap: str, new_topic: str, new_producer: NewProducer
) -> None:
    slow = new_producer(f"{new_topic}-slow", 1000)
    slow.begin()
    slow.send(new_topic, 0, b"slow")
    other = new_producer(f"{new_topic}-other")
    other.begin()
    other.send(new_topic, 0, b"other")
    other.commit()

    # The slow transaction holds back the last stable offset until it is aborted.
    assert committed_values(bootstrap, new_topic, 1) == [["other"], [], []]
    with pytest.raises(Refused):
        slow.commit()


V2_KINDS = (Ours, JavaV2, FranzGo)


def test_only_clients_of_v2_get_a_new_epoch_with_each_transaction(
    bootstrap: str, new_topic: str, new_producer: NewProducer
) -> None:
    producer = new_producer(f"{new_topic}-id")
    for epoch in [1, 2] if isinstance(producer, V2_KINDS) else [0, 0]:
        producer.begin()
        producer.send(new_topic, 0, b"x")
        producer.commit()
        assert described(bootstrap, f"{new_topic}-id").producer_epoch == epoch


def described(bootstrap: str, transactional_id: str) -> Any:
    with WireClient(bootstrap.split(",", maxsplit=1)[0]) as client:
        find = FindCoordinatorRequest(key=transactional_id, key_type=1)
        coordinator = client.ask(ApiKey.FIND_COORDINATOR, 2, find)
    asked = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    with WireClient(f"{coordinator.host}:{coordinator.port}") as client:
        (state,) = client.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, asked).transaction_states
    return state
