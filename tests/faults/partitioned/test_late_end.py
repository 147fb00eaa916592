"""An EndTxn that is held back and let go into the next transaction: v1 ends that one, v2 touches nothing.

What v1 does is what Apache Kafka does, which is asked the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from broker.wire import WireClient
from client.conftest import free_port
from compat.committed_readers import librdkafka
from compat.transactional_clients import PATIENCE_SECONDS, Librdkafka, Ours, Refused
from faults.broker_process import wait_until
from faults.partitioned.holding_proxy import HoldingProxy
from kafka_peer import running_kafka
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeTransactionsRequest
from odradek.testing import Cluster

pytestmark = pytest.mark.slow
TOPIC = "orders"
FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


def with_topic(bootstrap: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (made,) = admin.create_topics([NewTopic(TOPIC, 1)]).values()
    made.result(PATIENCE_SECONDS)
    return bootstrap


@pytest.fixture
def ours(proxy: HoldingProxy) -> Iterator[str]:
    proxy.upstream = free_port()
    listeners = {
        "listeners": f"PLAINTEXT://127.0.0.1:{proxy.upstream}",
        "advertised.listeners": f"PLAINTEXT://{proxy.address}",
    }
    with Cluster(listeners):
        yield with_topic(proxy.address)


@pytest.fixture
def kafka(proxy: HoldingProxy, tmp_path) -> Iterator[str]:
    with running_kafka(tmp_path, {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as address:
        proxy.upstream = int(address.rpartition(":")[2])
        yield with_topic(proxy.address)


@pytest.fixture
def proxy() -> Iterator[HoldingProxy]:
    with HoldingProxy() as made:
        yield made


@pytest.fixture(params=["ours", pytest.param("kafka", marks=[pytest.mark.java, pytest.mark.long])])
def bootstrap(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def state_of(bootstrap: str, transactional_id: str) -> str:
    with WireClient(bootstrap) as client:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        (state,) = client.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request).transaction_states
    return str(state.transaction_state)


def test_v2_refuses_it_and_the_next_transaction_continues(bootstrap: str, proxy: HoldingProxy) -> None:
    producer = Ours(bootstrap, "id")
    begin_second_with_a_late_commit(producer, proxy)
    assert proxy.let_go() in FENCED
    assert state_of(bootstrap, "id") == "Ongoing"
    producer.send(TOPIC, 0, b"second, after")
    producer.abort()
    producer.begin()
    producer.send(TOPIC, 0, b"third")
    producer.commit()
    producer.close()
    assert librdkafka(bootstrap, TOPIC, 1, 2) == [["first", "third"]]


def test_v1_takes_it_for_the_end_of_the_next_transaction(bootstrap: str, proxy: HoldingProxy) -> None:
    producer = Librdkafka(bootstrap, "id")
    begin_second_with_a_late_commit(producer, proxy)
    assert proxy.let_go() == ErrorCode.NONE
    wait_until(lambda: state_of(bootstrap, "id") == "CompleteCommit", "the markers are written")
    # The leader asks the coordinator and refuses what would be a transaction that nobody ends.
    with pytest.raises(Refused):
        producer.send(TOPIC, 0, b"second, after")
    with pytest.raises(Refused):
        producer.commit()
    producer.close()
    assert librdkafka(bootstrap, TOPIC, 1, 2) == [["first", "second"]]
    everything = librdkafka(bootstrap, TOPIC, 1, 2, isolation="read_uncommitted")
    assert everything == [["first", "second"]]


def begin_second_with_a_late_commit(producer: Librdkafka | Ours, proxy: HoldingProxy) -> None:
    """The commit of the first transaction is repeated by the client, because its connection was lost."""
    producer.begin()
    producer.send(TOPIC, 0, b"first")
    proxy.hold_next_end()
    producer.commit()
    assert proxy.held.is_set()
    producer.begin()
    producer.send(TOPIC, 0, b"second")
