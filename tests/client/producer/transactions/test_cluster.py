"""Transactions over partitions of three brokers: whole or nothing, also while brokers are killed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from client.producer.transactions.brokers import values, values_by_partition
from odradek import AbortableTransactionError, Admin, Producer
from odradek.testing import Cluster

PARTITIONS = 3
TRANSACTIONS = 60
MAX_SECONDS = 120
QUICK = {"retry_backoff_ms": 10, "reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 100}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    settings = {
        "default.replication.factor": 3,
        "min.insync.replicas": 2,
        "offsets.topic.replication.factor": 3,
        "transaction.state.log.replication.factor": 3,
        "transaction.state.log.min.isr": 2,
    }
    with Cluster(settings, brokers=3) as cluster:
        yield cluster


def test_a_transaction_spans_the_leaders_of_three_brokers(three: Cluster) -> None:
    with Admin(bootstrap_servers=three.bootstrap) as admin:
        admin.create_topic("spread", num_partitions=PARTITIONS)
        leaders = {one.leader for one in admin.describe_topic("spread").partitions}
    assert len(leaders) == PARTITIONS
    with Producer(bootstrap_servers=three.bootstrap, transactional_id="spread") as producer:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.send("spread", b"%d" % number, partition=partition).result(30)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    assert values(three.bootstrap, "spread") == sorted([b"0", b"2", b"4"] * PARTITIONS)


def test_brokers_that_are_killed_lose_duplicate_reorder_and_tear_nothing(three: Cluster) -> None:
    with Admin(bootstrap_servers=three.bootstrap) as admin:
        admin.create_topic("killed", num_partitions=PARTITIONS)
    deadline = time.monotonic() + MAX_SECONDS
    with Producer(bootstrap_servers=three.bootstrap, transactional_id="killed", **QUICK) as producer:
        producer.init_transactions()
        for number in range(TRANSACTIONS):
            if number % 20 == 10:
                broker_id = number // 20
                three.kill(broker_id)
            if number % 20 == 15:
                three.start(broker_id)
            while True:
                assert time.monotonic() < deadline, f"{number} transactions"
                try:
                    with producer.transaction():
                        for partition in range(PARTITIONS):
                            producer.send("killed", b"%03d" % number, partition=partition)
                except AbortableTransactionError:
                    continue
                break
    expected = [b"%03d" % one for one in range(TRANSACTIONS)]
    assert values_by_partition(three.bootstrap, "killed") == [expected] * PARTITIONS
