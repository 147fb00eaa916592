from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic
from kafka.admin import NewTopic as PythonNewTopic

from broker.running import RunningBroker
from odradek.broker.requests.services import Services
from odradek.broker.settings.sources import Source
from odradek.cluster.metadata import PartitionMetadata
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import CreateTopicsRequest

Topic = CreateTopicsRequest.Topics
OLDEST, NEWEST = 2, 7


def topic(name: str, **fields: object) -> Topic:
    return Topic(**{"name": name, "num_partitions": 1, "replication_factor": 1, **fields})


def create(broker: RunningBroker, *topics: Topic, version: int = NEWEST, **fields: object):
    request = CreateTopicsRequest(topics=list(topics), **fields)
    rows = broker.ask(ApiKey.CREATE_TOPICS, version, request).topics
    assert sorted(row.name for row in rows) == sorted({topic.name for topic in topics})
    return rows


def topic_names(broker: RunningBroker) -> set[str]:
    return broker.look(lambda server: set(server.services.image.topics))


def test_a_topic_can_be_found_with_its_leaders_once_the_answer_is_there(broker, admin):
    admin.create_topics([NewTopic("orders", 6, 1)])["orders"].result(20)

    partitions = admin.list_topics("orders", timeout=10).topics["orders"].partitions
    assert {index: one.leader for index, one in partitions.items()} == dict.fromkeys(range(6), 0)


def test_the_response_waits_for_a_change_of_the_metadata_and_polls_nothing(broker, monkeypatch):
    checks: list[str] = []
    has_leaders = threading.Event()
    is_led = Services.is_led

    def counted(services: Services, name: str, index: int, partition: PartitionMetadata) -> bool:
        checks.append(name)
        return has_leaders.is_set() and is_led(services, name, index, partition)

    monkeypatch.setattr(Services, "is_led", counted)
    with ThreadPoolExecutor(1) as pool:
        creating = pool.submit(create, broker, topic("orders"))
        while broker.look(lambda server: server.services.replicas.find("orders", 0)) is None or not checks:
            time.sleep(0.001)
        before = len(checks)
        time.sleep(0.05)
        assert len(checks) - before < 5  # one for each request of the controller
        assert not creating.done()

        has_leaders.set()
        broker.look(lambda server: server.services.state_changes.notify())
        (row,) = creating.result(20)
    assert row.error_code == 0


def test_kafka_python_makes_a_topic_with_settings(broker, python_admin):
    python_admin.create_topics([PythonNewTopic("orders", 2, 1, topic_configs={"cleanup.policy": "compact"})])
    log_config = broker.look(lambda server: server.services.replicas.get("orders", 1).log.config)
    assert log_config.cleanup_policy == ("compact",)


def test_the_answer_reports_id_numbers_and_settings(broker):
    retention = Topic.Configs(name="retention.ms", value="1000")
    (row,) = create(broker, topic("orders", num_partitions=3, configs=[retention]))

    assert (row.error_code, row.error_message, row.topic_config_error_code) == (0, None, 0)
    assert (row.num_partitions, row.replication_factor) == (3, 1)
    assert row.topic_id == broker.look(lambda server: server.services.image.topics["orders"].topic_id)
    configs = {config.name: config for config in row.configs}
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("1000", Source.TOPIC)
    assert configs["segment.bytes"].config_source == Source.DEFAULT
    assert len(configs) > 20


@pytest.mark.parametrize("version", range(OLDEST, NEWEST + 1))
def test_every_version_is_served(broker, version):
    (row,) = create(broker, topic("orders"), version=version)
    assert row.error_code == 0
    assert topic_names(broker) == {"orders"}


def test_numbers_left_open_are_the_brokers_defaults(tmp_path):
    with RunningBroker(tmp_path, "num.partitions=4") as broker:
        (row,) = create(broker, topic("orders", num_partitions=-1, replication_factor=-1))
    assert (row.num_partitions, row.replication_factor) == (4, 1)


def test_a_manual_assignment_is_kept(broker):
    assignments = [Topic.Assignments(partition_index=index, broker_ids=[0]) for index in (1, 0)]
    (row,) = create(
        broker, topic("orders", num_partitions=-1, replication_factor=-1, assignments=assignments)
    )
    assert (row.error_code, row.num_partitions) == (0, 2)


def test_validating_makes_nothing(broker, admin):
    (row,) = create(broker, topic("orders", num_partitions=3), validate_only=True)
    assert (row.error_code, row.num_partitions, row.topic_id) == (0, 3, bytes(16))
    (bad,) = create(broker, topic("orders", replication_factor=2), validate_only=True)
    assert bad.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert topic_names(broker) == set()


def test_one_bad_topic_does_not_stop_the_others(broker):
    typo = Topic.Configs(name="retention.mss", value="1")
    null = Topic.Configs(name="retention.ms", value=None)
    twice = [Topic.Assignments(partition_index=0, broker_ids=[0])] * 2
    rows = create(
        broker,
        topic("good"),
        topic("twice"),
        topic("twice"),
        topic("../x"),
        topic("none", num_partitions=0),
        topic("many", replication_factor=2),
        topic("typo", configs=[typo]),
        topic("null", configs=[null]),
        topic("double", num_partitions=-1, replication_factor=-1, assignments=twice),
        topic("both", assignments=twice[:1]),
    )
    assert {row.name: ErrorCode(row.error_code) for row in rows} == {
        "good": ErrorCode.NONE,
        "twice": ErrorCode.INVALID_REQUEST,
        "../x": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "none": ErrorCode.INVALID_PARTITIONS,
        "many": ErrorCode.INVALID_REPLICATION_FACTOR,
        "typo": ErrorCode.INVALID_CONFIG,
        "null": ErrorCode.INVALID_CONFIG,
        "double": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "both": ErrorCode.INVALID_REQUEST,
    }
    assert all(row.error_message for row in rows if row.error_code)
    assert "retention.ms" in next(row.error_message for row in rows if row.name == "typo").split("mean")[1]
    assert topic_names(broker) == {"good"}


def test_a_topic_that_exists_is_refused(broker, admin):
    admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(20)
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(20)


def test_a_topic_whose_leaders_take_too_long_is_made_and_answered_with_a_time_out(broker):
    (row,) = create(broker, topic("orders", num_partitions=100), timeout_ms=20)
    assert (row.error_code, bool(row.error_message)) == (ErrorCode.REQUEST_TIMED_OUT, True)

    deadline = time.monotonic() + 20
    while "orders" not in topic_names(broker):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_when_the_time_is_over_no_more_topics_are_made(broker):
    (row,) = create(broker, topic("orders"), timeout_ms=-1)
    assert (row.error_code, bool(row.error_message)) == (ErrorCode.REQUEST_TIMED_OUT, True)
    (row,) = create(broker, topic("orders"))
    assert row.error_code == 0, "it would exist"


def test_a_hundred_thousand_topics_are_refused_at_once(broker, admin):
    started = time.monotonic()
    rows = create(broker, *(topic(f"topic-{number}") for number in range(100_000)))
    assert {row.error_code for row in rows} == {ErrorCode.POLICY_VIOLATION}
    assert topic_names(broker) == set()
    assert time.monotonic() - started < 10
    admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(20)


def test_two_billion_partitions_are_refused(broker):
    (row,) = create(broker, topic("orders", num_partitions=2**31 - 1))
    assert row.error_code == ErrorCode.POLICY_VIOLATION
