from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from broker.running import RunningBroker
from odradek.broker.requests.config_resources import ConfigResourceType as Type
from odradek.broker.settings.alter import Operation
from odradek.broker.settings.sources import Source
from odradek.common.error_codes import ErrorCode
from odradek.log.config import LogConfig
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import IncrementalAlterConfigsRequest

Resource = IncrementalAlterConfigsRequest.Resources


def make(admin: AdminClient, name: str = "orders") -> None:
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)


def alter_by(
    admin: AdminClient,
    kind: ResourceType,
    name: str,
    key: str,
    value: str | None,
    operation: AlterConfigOpType = AlterConfigOpType.SET,
) -> None:
    entry = ConfigEntry(key, value, incremental_operation=operation)
    asked = ConfigResource(kind, name, incremental_configs=[entry])
    admin.incremental_alter_configs([asked])[asked].result(20)


def entry_of(admin: AdminClient, kind: ResourceType, name: str, key: str) -> ConfigEntry:
    asked = ConfigResource(kind, name)
    return admin.describe_configs([asked])[asked].result(20)[key]


def ask(
    broker: RunningBroker, number: int, name: str, *configs: tuple[str, int, str | None], **fields: object
):
    given = [Resource.Configs(name=key, config_operation=what, value=value) for key, what, value in configs]
    asked = Resource(resource_type=number, resource_name=name, configs=given)
    request = IncrementalAlterConfigsRequest(resources=[asked], **fields)
    (row,) = broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses
    return row


def log_config(broker: RunningBroker) -> LogConfig:
    return broker.look(lambda server: server.services.replicas.get("orders", 0).log.config)


def wait_for_retention(broker: RunningBroker, retention_ms: int) -> None:
    deadline = time.monotonic() + 10
    while log_config(broker).retention_ms != retention_ms:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_settings_of_a_topic_are_set_appended_to_subtracted_from_and_deleted(broker, admin):
    make(admin)
    for operation, value, expected in (
        (AlterConfigOpType.APPEND, "compact", "delete,compact"),
        (AlterConfigOpType.SUBTRACT, "delete", "compact"),
        (AlterConfigOpType.SET, "delete", "delete"),
    ):
        alter_by(admin, ResourceType.TOPIC, "orders", "cleanup.policy", value, operation)
        entry = entry_of(admin, ResourceType.TOPIC, "orders", "cleanup.policy")
        assert (entry.value, entry.source) == (expected, Source.TOPIC)
    alter_by(admin, ResourceType.TOPIC, "orders", "cleanup.policy", None, AlterConfigOpType.DELETE)
    assert entry_of(admin, ResourceType.TOPIC, "orders", "cleanup.policy").source == Source.DEFAULT


def test_the_logs_of_a_topic_get_its_new_settings(broker, admin):
    make(admin)
    alter_by(admin, ResourceType.TOPIC, "orders", "retention.ms", "5000")
    wait_for_retention(broker, 5000)


@pytest.mark.parametrize(
    ("name", "source"), [("0", Source.DYNAMIC_BROKER), ("", Source.DYNAMIC_DEFAULT_BROKER)]
)
def test_settings_of_brokers_are_reported_applied_and_survive_a_restart(tmp_path, name, source):
    with RunningBroker(tmp_path) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        make(admin)
        assert ask(broker, Type.BROKER, name, ("log.retention.ms", Operation.SET, "7000")).error_code == 0
        entry = entry_of(admin, ResourceType.BROKER, "0", "log.retention.ms")
        assert (entry.value, entry.source) == ("7000", source)
        assert log_config(broker).retention_ms == 7000
    with RunningBroker(tmp_path) as broker:
        wait_for_retention(broker, 7000)


def test_a_setting_of_the_broker_does_not_hide_one_of_the_topic(broker, admin):
    make(admin)
    alter_by(admin, ResourceType.TOPIC, "orders", "retention.ms", "5000")
    alter_by(admin, ResourceType.BROKER, "0", "log.retention.ms", "7000")
    wait_for_retention(broker, 5000)
    alter_by(admin, ResourceType.TOPIC, "orders", "retention.ms", None, AlterConfigOpType.DELETE)
    wait_for_retention(broker, 7000)


def test_a_typo_is_answered_with_the_nearest_name(broker, admin):
    make(admin)
    with pytest.raises(KafkaException, match=r"INVALID_CONFIG.*did you mean retention\.ms\?"):
        alter_by(admin, ResourceType.TOPIC, "orders", "retention.mss", "1")
    with pytest.raises(KafkaException, match=r"INVALID_CONFIG.*did you mean log\.retention\.ms\?"):
        alter_by(admin, ResourceType.BROKER, "0", "log.retention.mss", "1")


@pytest.mark.parametrize(
    ("number", "name", "configs", "error_code"),
    [
        (Type.TOPIC, "unknown", [("retention.ms", Operation.SET, "1")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Type.TOPIC, "../x", [("retention.ms", Operation.SET, "1")], ErrorCode.INVALID_TOPIC_EXCEPTION),
        (Type.TOPIC, "", [("retention.ms", Operation.SET, "1")], ErrorCode.INVALID_REQUEST),
        (Type.TOPIC, "orders", [("retention.ms", Operation.SET, "soon")], ErrorCode.INVALID_CONFIG),
        (Type.TOPIC, "orders", [("retention.ms", Operation.APPEND, "1")], ErrorCode.INVALID_CONFIG),
        (Type.TOPIC, "orders", [("retention.ms", Operation.SET, None)], ErrorCode.INVALID_REQUEST),
        (Type.TOPIC, "orders", [("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        (Type.TOPIC, "orders", [("retention.ms", Operation.SET, "1")] * 2, ErrorCode.INVALID_REQUEST),
        (Type.BROKER, "7", [("log.retention.ms", Operation.SET, "1")], ErrorCode.INVALID_REQUEST),
        (Type.BROKER, "0", [("broker.id", Operation.SET, "1")], ErrorCode.INVALID_REQUEST),
        (Type.BROKER_LOGGER, "0", [("root", Operation.SET, "INFO")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(broker, admin, number, name, configs, error_code):
    make(admin)
    row = ask(broker, number, name, *configs)
    assert (row.error_code, bool(row.error_message)) == (error_code, True)
    assert entry_of(admin, ResourceType.TOPIC, "orders", "retention.ms").source == Source.DEFAULT


@pytest.mark.parametrize(
    ("number", "kind", "name", "key"),
    [
        (Type.TOPIC, ResourceType.TOPIC, "orders", "retention.ms"),
        (Type.BROKER, ResourceType.BROKER, "0", "log.retention.ms"),
    ],
)
def test_validating_changes_nothing(broker, admin, number, kind, name, key):
    make(admin)
    row = ask(broker, number, name, (key, Operation.SET, "5000"), validate_only=True)
    assert row.error_code == 0
    assert entry_of(admin, kind, name, key).value != "5000"
    bad = ask(broker, number, name, (key, Operation.SET, "soon"), validate_only=True)
    assert bad.error_code in {ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST}
