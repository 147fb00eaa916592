"""A revoked ACL holds for the next request of a connection that is already open; seen by confluent-kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from broker.running import RunningBroker
from client.eventually import eventually

SETTINGS = (
    "authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
    # What has ACLs is protected; the cluster and the group have none.
    "allow.everyone.if.no.acl.found=true",
)
DENIED = KafkaError.TOPIC_AUTHORIZATION_FAILED


class Orders:
    """A topic whose ACLs a test changes."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.admin = AdminClient({"bootstrap.servers": address})
        for future in self.admin.create_topics([NewTopic("orders", 1)]).values():
            future.result()
        for operation in (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE):
            self.allow(operation, "User:somebody-else")
        self.allow(AclOperation.DESCRIBE)

    def allow(self, operation: AclOperation, principal: str = "User:ANONYMOUS") -> None:
        for future in self.admin.create_acls([AclBinding(*_parts(operation, principal))]).values():
            future.result()

    def revoke(self, operation: AclOperation) -> None:
        ((_, future),) = self.admin.delete_acls(
            [AclBindingFilter(*_parts(operation, "User:ANONYMOUS"))]
        ).items()
        assert len(future.result()) == 1


def _parts(operation: AclOperation, principal: str) -> tuple[object, ...]:
    where = (ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL)
    return (*where, principal, "*", operation, AclPermissionType.ALLOW)


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Orders]:
    with RunningBroker(tmp_path, *SETTINGS) as broker:
        yield Orders(broker.address)


def test_a_producer_is_stopped_and_continues(orders: Orders) -> None:
    settings = {"bootstrap.servers": orders.address, "linger.ms": 0}
    # It remembers what it was refused until it asks for metadata again.
    producer = Producer(settings | {"topic.metadata.refresh.interval.ms": 100})

    def sent() -> int:
        outcomes: list[int] = []

        def on_delivery(error: KafkaError | None, _: Message) -> None:
            outcomes.append(KafkaError.NO_ERROR if error is None else error.code())

        try:
            producer.produce("orders", b"x", on_delivery=on_delivery)
        except KafkaException as refused:
            return int(refused.args[0].code())
        assert producer.flush(30) == 0
        return outcomes[0]

    orders.allow(AclOperation.WRITE)
    assert sent() == KafkaError.NO_ERROR
    orders.revoke(AclOperation.WRITE)
    assert sent() == DENIED
    orders.allow(AclOperation.WRITE)
    eventually(lambda: sent() == KafkaError.NO_ERROR)


@pytest.mark.slow
def test_a_consumer_is_stopped_and_continues(orders: Orders) -> None:
    orders.allow(AclOperation.WRITE)
    orders.allow(AclOperation.READ)
    producer = Producer({"bootstrap.servers": orders.address, "linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": orders.address, "group.id": "g", "fetch.wait.max.ms": 50})
    consumer.assign([TopicPartition("orders", 0, 0)])

    def read(wanted: int) -> None:
        """Produce a record, and poll until that code comes: others may have been on their way."""
        producer.produce("orders", b"x")
        assert producer.flush(30) == 0
        while True:
            message = consumer.poll(30)
            assert message is not None, f"nothing came, where {wanted} should have"
            error = message.error()
            if (KafkaError.NO_ERROR if error is None else error.code()) == wanted:
                return

    read(KafkaError.NO_ERROR)
    orders.revoke(AclOperation.READ)
    read(DENIED)
    orders.allow(AclOperation.READ)
    read(KafkaError.NO_ERROR)
    consumer.close()
