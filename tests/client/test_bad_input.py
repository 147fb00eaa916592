"""Clients that were told something wrong: a clear exception at once, or within the configured time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from client.conftest import QUICK_GROUPS, free_port
from client.eventually import eventually
from odradek import Admin, Consumer, Producer, TopicPartition
from odradek.client.errors import AdvertisedListenerUnreachable, DeadlineExceeded
from odradek.client.producer.errors import DeliveryTimedOut
from odradek.common.errors import KafkaError
from odradek.testing import Cluster

PLACE = TopicPartition("t", 0)
QUICK = {"retry_backoff_ms": 5, "reconnect_backoff_ms": 5, "default_api_timeout_ms": 300}

Use = Callable[[Consumer[bytes, bytes]], object]


def poll_until_reported(consumer: Consumer[bytes, bytes]) -> None:
    for _ in range(100):
        consumer.poll(0.3)


def assign(consumer: Consumer[bytes, bytes]) -> None:
    consumer.assign([PLACE])
    poll_until_reported(consumer)


def assign_and_seek(consumer: Consumer[bytes, bytes]) -> None:
    consumer.assign([PLACE])
    consumer.seek(PLACE, 5)
    poll_until_reported(consumer)


def subscribe(consumer: Consumer[bytes, bytes]) -> None:
    consumer.subscribe(["t"])
    poll_until_reported(consumer)


def position(consumer: Consumer[bytes, bytes]) -> None:
    consumer.assign([PLACE])
    consumer.position(PLACE, 0.2)


def commit(consumer: Consumer[bytes, bytes]) -> None:
    consumer.commit({PLACE: 1})


USES = [assign, assign_and_seek, subscribe, position, commit, lambda consumer: consumer.end_offsets([PLACE])]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_a_consumer_without_a_broker_says_so(use: Use, group_protocol: str) -> None:
    with (
        Consumer(
            bootstrap_servers="127.0.0.1:1", group_id="g", group_protocol=group_protocol, **QUICK
        ) as one,
        pytest.raises(DeadlineExceeded, match=r"no bootstrap server can be reached \(127.0.0.1:1: .*refused"),
    ):
        use(one)


@pytest.fixture(scope="module")
def astray() -> Iterator[str]:
    """The address of a broker that advertises another one, on which nothing listens."""
    bootstrap = f"127.0.0.1:{free_port()}"
    listeners = {
        "listeners": f"PLAINTEXT://{bootstrap}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
    }
    with Cluster(listeners, num_partitions=1):
        yield bootstrap


def explanation(bootstrap: str) -> str:
    return (
        rf"cannot connect to broker 0 at 127.0.0.1:\d+: the connection was refused. The cluster was reached "
        rf"through {bootstrap}, .* advertised.listeners names an address that this machine cannot use; set "
        rf"it to one that clients can reach"
    )


def test_a_producer_explains_a_wrong_advertised_listener(
    astray: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {
        "delivery_timeout_ms": 400,
        "request_timeout_ms": 200,
        "linger_ms": 0,
        "reconnect_backoff_ms": 5,
    }
    with Producer(bootstrap_servers=astray, **settings) as producer:
        future = producer.send("t", b"v")
        with pytest.raises(DeliveryTimedOut, match=explanation(astray)) as caught:
            future.result(20)
        assert isinstance(caught.value.why, AdvertisedListenerUnreachable)
        assert producer.flush(20)
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1, "logged at once, and not again and again"
    assert "advertised.listeners" in warnings[0].getMessage()


@pytest.mark.parametrize("use", USES)
def test_a_consumer_explains_a_wrong_advertised_listener(astray: str, use: Use) -> None:
    with (
        Consumer(bootstrap_servers=astray, group_id="g", **QUICK) as consumer,
        pytest.raises(DeadlineExceeded, match=explanation(astray)),
    ):
        use(consumer)


def test_an_admin_explains_a_wrong_advertised_listener(astray: str) -> None:
    with (
        Admin(bootstrap_servers=astray, **QUICK) as admin,
        pytest.raises(DeadlineExceeded, match=explanation(astray)),
    ):
        admin.create_topic("x", num_partitions=1)


@pytest.fixture(scope="module")
def strict() -> Iterator[Cluster]:
    """A broker that makes no topics by itself."""
    with Cluster(QUICK_GROUPS, auto_create_topics_enable=False) as cluster:
        yield cluster


def test_a_producer_says_that_there_is_no_such_topic(strict: Cluster) -> None:
    with (
        Producer(bootstrap_servers=strict.bootstrap, max_block_ms=200, **QUICK) as producer,
        pytest.raises(DeadlineExceeded, match=r"finding topic t .* 200 ms: UnknownTopicOrPartition: topic t"),
    ):
        producer.send("t", b"v")


@pytest.mark.parametrize("use", [assign, position, lambda consumer: consumer.end_offsets([PLACE])])
def test_a_consumer_says_that_there_is_no_such_topic(strict: Cluster, use: Use) -> None:
    with (
        Consumer(bootstrap_servers=strict.bootstrap, **QUICK) as consumer,
        pytest.raises(DeadlineExceeded, match="UnknownTopicOrPartition: t-0"),
    ):
        use(consumer)


def test_a_consumer_says_that_there_is_no_such_partition(strict: Cluster) -> None:
    with Admin(bootstrap_servers=strict.bootstrap) as admin:
        admin.create_topic("small", num_partitions=2)
    with (
        Consumer(bootstrap_servers=strict.bootstrap, **QUICK) as consumer,
        pytest.raises(DeadlineExceeded, match="topic small has 2 partitions, and no 2"),
    ):
        consumer.end_offsets([TopicPartition("small", 2)])


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_a_subscription_waits_for_its_topic_and_says_so(
    strict: Cluster, caplog: pytest.LogCaptureFixture, group_protocol: str
) -> None:
    topic = f"not-yet-{group_protocol}"
    settings: dict[str, Any] = {"auto_offset_reset": "earliest", "retry_backoff_max_ms": 50, **QUICK}
    if group_protocol == "classic":
        settings["heartbeat_interval_ms"] = 50
    with Consumer(
        bootstrap_servers=strict.bootstrap, group_id=topic, group_protocol=group_protocol, **settings
    ) as consumer:
        consumer.subscribe([topic])
        eventually(lambda: consumer.poll(0.05) == [] and f"topic {topic} does not exist" in caplog.text)
        with Admin(bootstrap_servers=strict.bootstrap) as admin:
            admin.create_topic(topic, num_partitions=1)
        with Producer(bootstrap_servers=strict.bootstrap) as producer:
            producer.send(topic, b"v").result(20)
        eventually(lambda: [record.value for record in consumer.poll(0.1)] == [b"v"])


@pytest.mark.parametrize("bad", ["a/b", "", "x" * 300, None, b"t"])
def test_what_can_be_no_topic_is_refused_at_once(strict: Cluster, bad: Any) -> None:
    with (
        Producer(bootstrap_servers=strict.bootstrap) as producer,
        Consumer(bootstrap_servers=strict.bootstrap, group_id="g") as consumer,
    ):
        for use in (
            lambda: producer.send(bad, b"v"),
            lambda: consumer.subscribe([bad]),
            lambda: consumer.assign([(bad, 0)]),  # type: ignore[list-item]
            lambda: consumer.partitions_for(bad),
        ):
            with pytest.raises((KafkaError, TypeError)):
                use()
