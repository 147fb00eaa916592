"""A producer whose group is refused, or not answered: its transaction is aborted, and the next one works."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from broker.wire import set_transaction_version
from client.eventually import eventually
from client.producer.transactions.brokers import make_topic, values
from client.producer.transactions.test_requests import a_coordinator
from client.scripted_broker import run
from odradek import AbortableTransactionError, Admin, AsyncProducer, Producer, TopicPartition
from odradek.client.admin.base import require
from odradek.common.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
)
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import EndTxnResponse
from odradek.testing import Cluster

STRICT = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def strict() -> Iterator[str]:
    """A broker that obeys ACLs."""
    with Cluster(STRICT) as cluster:
        yield cluster.bootstrap


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def either_version(strict: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The broker with each version of transactions."""
    if request.param == 2:
        yield strict
        return
    set_transaction_version(strict, request.param)
    yield strict
    set_transaction_version(strict, 2)


def deny_reading(bootstrap: str, group: str) -> None:
    denied = AccessControlEntry("User:ANONYMOUS", "*", AclOperation.READ, AclPermissionType.DENY)
    binding = AclBinding(ResourcePattern(ResourceType.GROUP, group), denied)
    with Admin(bootstrap_servers=bootstrap) as admin:
        require(admin.create_acls([binding])[binding])
        eventually(lambda: binding in set(admin.describe_acls()))


@pytest.mark.parametrize("has_records", [False, True], ids=["first", "after a record"])
def test_a_transaction_whose_group_is_refused_is_aborted_and_the_next_one_works(
    either_version: str, *, has_records: bool
) -> None:
    topic = make_topic(either_version, f"refused-{secrets.token_hex(4)}")
    place, group = TopicPartition(topic, 0), f"group of {topic}"
    deny_reading(either_version, group)
    with Producer(bootstrap_servers=either_version, transactional_id=topic) as producer:
        producer.init_transactions()
        for _ in range(2):
            producer.begin_transaction()
            if has_records:
                producer.send(topic, b"aborted", partition=0).result(60)
            with pytest.raises(AbortableTransactionError, match="GroupAuthorizationFailed"):
                producer.send_offsets_to_transaction({place: 3}, group)
            producer.abort_transaction()
            with producer.transaction():
                producer.send(topic, b"kept", partition=0)
                producer.send_offsets_to_transaction({place: 4}, topic)
    assert values(either_version, topic) == [b"kept"] * 2


def test_v1_ends_a_transaction_whose_group_may_have_been_added() -> None:
    async def scenario() -> None:
        async with a_coordinator(transaction_version=1) as broker:
            broker.say[ApiKey.ADD_OFFSETS_TO_TXN] = lambda _: None
            broker.say[ApiKey.END_TXN] = lambda _: EndTxnResponse()
            async with AsyncProducer(
                bootstrap_servers=broker.address, transactional_id="id", max_block_ms=500, retry_backoff_ms=1
            ) as producer:
                await producer.init_transactions()
                await producer.begin_transaction()
                with pytest.raises(TimeoutError):
                    await producer.send_offsets_to_transaction({TopicPartition("orders", 0): 1}, "group")
                await producer.abort_transaction()
            assert ApiKey.END_TXN in [key for key, _, _ in broker.asked]

    run(scenario())
