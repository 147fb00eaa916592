from __future__ import annotations

import pytest
from confluent_kafka.admin import NewPartitions, NewTopic

from broker.running import RunningBroker
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import CreatePartitionsRequest

Topic = CreatePartitionsRequest.Topics


@pytest.fixture(autouse=True)
def orders(admin) -> None:
    admin.create_topics([NewTopic("orders", 2, 1)])["orders"].result(20)


def grow(broker: RunningBroker, *topics: Topic, version: int = 3, **fields: object):
    request = CreatePartitionsRequest(topics=list(topics), **{"timeout_ms": 10_000, **fields})
    return broker.ask(ApiKey.CREATE_PARTITIONS, version, request).results


def topic(name: str = "orders", count: int = 5, assignments: list[list[int]] | None = None) -> Topic:
    given = assignments and [Topic.Assignments(broker_ids=ids) for ids in assignments]
    return Topic(name=name, count=count, assignments=given)


def leaders(broker: RunningBroker) -> list[int]:
    return broker.look(
        lambda server: [one.leader for one in server.services.image.topics["orders"].partitions.values()]
    )


def test_new_partitions_have_leaders_once_the_answer_is_there(broker, admin):
    admin.create_partitions([NewPartitions("orders", 5)])["orders"].result(20)
    assert leaders(broker) == [0] * 5


def test_kafka_python_adds_partitions(broker, python_admin):
    python_admin.create_partitions({"orders": 3})
    assert leaders(broker) == [0] * 3


@pytest.mark.parametrize("version", range(4))
def test_every_version_is_served(broker, version):
    (row,) = grow(broker, topic(), version=version)
    assert (row.name, row.error_code, row.error_message) == ("orders", 0, None)


def test_a_manual_assignment_is_kept(broker):
    (row,) = grow(broker, topic(count=3, assignments=[[0]]))
    assert row.error_code == 0
    (row,) = grow(broker, topic(count=4, assignments=[[9]]))
    assert row.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_validating_adds_nothing(broker):
    (row,) = grow(broker, topic(), validate_only=True)
    assert row.error_code == 0
    assert leaders(broker) == [0, 0]


@pytest.mark.parametrize(
    ("asked", "error_code"),
    [
        ((topic(count=2),), ErrorCode.INVALID_PARTITIONS),
        ((topic(count=1),), ErrorCode.INVALID_PARTITIONS),
        ((topic(count=-1),), ErrorCode.INVALID_PARTITIONS),
        ((topic(count=2**31 - 1),), ErrorCode.POLICY_VIOLATION),
        ((topic("unknown"),), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((topic("unknown", 2**31 - 1),), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((topic(), topic(count=7)), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_is_refused(broker, asked, error_code):
    (row,) = grow(broker, *asked)
    assert (row.error_code, bool(row.error_message)) == (error_code, True)
    assert leaders(broker) == [0, 0]


def test_without_time_nothing_is_added(broker):
    (row,) = grow(broker, topic(), timeout_ms=-1)
    assert row.error_code == ErrorCode.REQUEST_TIMED_OUT
    (row,) = grow(broker, topic(count=3))
    assert row.error_code == 0, "5 partitions could not become 3"
