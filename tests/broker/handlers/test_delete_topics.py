from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from broker.running import RunningBroker
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DeleteTopicsRequest

Topic = DeleteTopicsRequest.Topics
OLDEST, NEWEST = 1, 6
SOME_ID = b"no such topic id"


def make(admin, *names: str, **fields: object) -> None:
    for done in admin.create_topics([NewTopic(name, 2, 1, **fields) for name in names]).values():
        done.result(20)


def delete(broker: RunningBroker, *topics: Topic, version: int = NEWEST, **fields: object):
    request = DeleteTopicsRequest(topics=list(topics), **{"timeout_ms": 10_000, **fields})
    return broker.ask(ApiKey.DELETE_TOPICS, version, request).responses


def id_of(broker: RunningBroker, name: str) -> bytes:
    return broker.look(lambda server: server.services.image.topics[name].topic_id)


def topic_names(broker: RunningBroker) -> set[str]:
    return broker.look(lambda server: set(server.services.image.topics))


def test_a_deleted_topic_is_gone_when_the_answer_comes(broker, admin, tmp_path: Path):
    make(admin, "orders", "other")
    admin.delete_topics(["orders"])["orders"].result(20)

    assert topic_names(broker) == {"other"}
    assert not list(tmp_path.glob("orders-[01]"))
    assert len(list(tmp_path.glob("orders-[01].*-delete"))) == 2


def test_a_name_can_be_used_again_at_once_and_old_settings_are_forgotten(broker, admin):
    for retention_ms in (1000, 2000, 3000):
        make(admin, "orders", config={"retention.ms": str(retention_ms)})
        config = broker.look(lambda server: server.services.replicas.get("orders", 0).log.config)
        assert config.retention_ms == retention_ms
        admin.delete_topics(["orders"])["orders"].result(20)


def test_kafka_python_deletes_a_topic(broker, admin, python_admin):
    make(admin, "orders")
    python_admin.delete_topics(["orders"])
    assert topic_names(broker) == set()


def test_a_topic_is_deleted_by_its_id(broker, admin):
    make(admin, "orders")
    topic_id = id_of(broker, "orders")
    (row,) = delete(broker, Topic(name=None, topic_id=topic_id))
    assert (row.name, row.topic_id, row.error_code) == ("orders", topic_id, 0)
    assert topic_names(broker) == set()


@pytest.mark.parametrize("version", range(OLDEST, NEWEST))
def test_versions_before_ids_are_served(broker, admin, version):
    make(admin, "orders")
    rows = delete(broker, version=version, topic_names=["orders", "unknown"])
    assert [(row.name, row.error_code) for row in rows] == [
        ("orders", ErrorCode.NONE),
        ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_one_bad_topic_does_not_stop_the_others(broker, admin):
    make(admin, "orders", "kept")
    kept_id = id_of(broker, "kept")
    rows = delete(
        broker,
        Topic(name="unknown"),
        Topic(name="../../ids"),
        Topic(name=None, topic_id=SOME_ID),
        Topic(name="both", topic_id=SOME_ID),
        Topic(name=None),
        Topic(name="kept"),
        Topic(name=None, topic_id=kept_id),
        Topic(name="orders"),
    )
    assert [ErrorCode(row.error_code) for row in rows] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,  # one row for the topic that was named twice
        ErrorCode.NONE,
    ]
    assert topic_names(broker) == {"kept"}


@pytest.mark.parametrize(
    ("version", "error_code"), [(1, ErrorCode.INVALID_REQUEST), (5, ErrorCode.TOPIC_DELETION_DISABLED)]
)
def test_deletion_can_be_disabled(tmp_path, version, error_code):
    with RunningBroker(tmp_path, "delete.topic.enable=false") as broker:
        make(AdminClient({"bootstrap.servers": broker.address}), "orders")
        (row,) = delete(broker, version=version, topic_names=["orders"])
        assert row.error_code == error_code
        assert topic_names(broker) == {"orders"}


def test_without_time_nothing_is_deleted(broker, admin):
    make(admin, "orders")
    (row,) = delete(broker, Topic(name="orders"), timeout_ms=-1)
    assert row.error_code == ErrorCode.REQUEST_TIMED_OUT
    with pytest.raises(KafkaException, match="already exists"):
        make(admin, "orders")
