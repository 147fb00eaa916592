"""What a producer hears whose transaction was open for longer than its time-out, by the version it uses."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator

import pytest

from broker.wire import set_transaction_version
from client.producer.transactions.brokers import ON_KAFKA, make_topic, values
from odradek import Admin, FatalTransactionError, Producer, ProducerFencedError
from odradek.client.admin.transactions import TransactionDescription
from odradek.testing import Cluster

TIMEOUT_MS = 300


@pytest.fixture(scope="module")
def quick() -> Iterator[str]:
    with Cluster({"transaction.abort.timed.out.transaction.cleanup.interval.ms": 50}) as cluster:
        yield cluster.bootstrap


@pytest.fixture
def ours_v2(quick: str) -> str:
    return quick


@pytest.fixture
def ours_v1(quick: str) -> Iterator[str]:
    set_transaction_version(quick, 1)
    yield quick
    set_transaction_version(quick, 2)


V2 = ["ours_v2", pytest.param("kafka_v2", marks=ON_KAFKA)]
V1 = ["ours_v1", pytest.param("kafka_v1", marks=ON_KAFKA)]


def timed_out(bootstrap: str) -> tuple[Producer, str]:
    """A producer whose transaction the coordinator has aborted, and the topic that it wrote to."""
    topic = make_topic(bootstrap, f"timed-out-{secrets.token_hex(4)}")
    producer = Producer(
        bootstrap_servers=bootstrap, transactional_id=topic, transaction_timeout_ms=TIMEOUT_MS
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"late", partition=0).result(30)
    deadline = time.monotonic() + 60
    with Admin(bootstrap_servers=bootstrap) as admin:

        def is_aborted() -> bool:
            found = admin.describe_transactions([topic])[topic]
            return isinstance(found, TransactionDescription) and found.state == "CompleteAbort"

        while not is_aborted():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    return producer, topic


@pytest.mark.parametrize("broker", V2)
def test_with_v2_a_commit_is_fatal(broker: str, request: pytest.FixtureRequest) -> None:
    bootstrap = request.getfixturevalue(broker)
    producer, topic = timed_out(bootstrap)
    with producer, pytest.raises(FatalTransactionError) as raised:
        producer.commit_transaction()
    assert type(raised.value) is FatalTransactionError
    assert values(bootstrap, topic) == []


@pytest.mark.parametrize("broker", V2)
def test_with_v2_a_producer_that_aborts_continues(broker: str, request: pytest.FixtureRequest) -> None:
    bootstrap = request.getfixturevalue(broker)
    producer, topic = timed_out(bootstrap)
    with producer:
        producer.abort_transaction()
        with producer.transaction():
            producer.send(topic, b"next", partition=0)
    assert values(bootstrap, topic) == [b"next"]


@pytest.mark.parametrize("broker", V1)
@pytest.mark.parametrize("end", [Producer.commit_transaction, Producer.abort_transaction])
def test_with_v1_a_producer_is_fenced(
    broker: str, request: pytest.FixtureRequest, end: Callable[[Producer], None]
) -> None:
    bootstrap = request.getfixturevalue(broker)
    producer, topic = timed_out(bootstrap)
    with producer, pytest.raises(ProducerFencedError):
        end(producer)
    assert values(bootstrap, topic) == []
