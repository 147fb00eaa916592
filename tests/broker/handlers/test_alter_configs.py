from __future__ import annotations

import pytest
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from broker.running import RunningBroker
from odradek.broker.requests.config_resources import ConfigResourceType as Type
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import AlterConfigsRequest

Resource = AlterConfigsRequest.Resources


@pytest.fixture(autouse=True)
def orders(admin) -> None:
    settings = {"retention.ms": "1000", "segment.bytes": "2000000"}
    admin.create_topics([NewTopic("orders", 1, 1, config=settings)])["orders"].result(20)


def resource(number: int, name: str, **configs: str | None) -> Resource:
    given = [Resource.Configs(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return Resource(resource_type=number, resource_name=name, configs=given)


def alter(broker: RunningBroker, *resources: Resource, version: int = 2, **fields: object):
    request = AlterConfigsRequest(resources=list(resources), **fields)
    return broker.ask(ApiKey.ALTER_CONFIGS, version, request).responses


def values_of(admin, kind: ResourceType, name: str) -> dict[str, str]:
    asked = ConfigResource(kind, name)
    return {key: entry.value for key, entry in admin.describe_configs([asked])[asked].result(20).items()}


@pytest.mark.parametrize("version", range(3))
def test_what_is_not_named_goes_back_to_its_default(broker, admin, version):
    (row,) = alter(broker, resource(Type.TOPIC, "orders", retention_ms="5000"), version=version)
    assert (row.error_code, row.error_message) == (0, None)
    values = values_of(admin, ResourceType.TOPIC, "orders")
    assert (values["retention.ms"], values["segment.bytes"]) == ("5000", str(2**30))


def test_the_settings_of_a_broker_are_replaced_too(broker, admin):
    alter(broker, resource(Type.BROKER, "", log_retention_ms="7000", log_segment_bytes="2000000"))
    (row,) = alter(broker, resource(Type.BROKER, "", log_retention_ms="8000"))
    assert row.error_code == 0
    values = values_of(admin, ResourceType.BROKER, "0")
    assert (values["log.retention.ms"], values["log.segment.bytes"]) == ("8000", str(2**30))


def test_validating_changes_nothing(broker, admin):
    (row,) = alter(broker, resource(Type.TOPIC, "orders", retention_ms="5000"), validate_only=True)
    assert row.error_code == 0
    assert values_of(admin, ResourceType.TOPIC, "orders")["retention.ms"] == "1000"


def test_one_bad_resource_does_not_stop_the_others(broker, admin):
    rows = alter(
        broker,
        resource(Type.TOPIC, "unknown", retention_ms="5000"),
        resource(Type.BROKER, "7", log_retention_ms="5000"),
        resource(Type.BROKER, "0", log_retention_ms=None),
        resource(Type.BROKER, ""),
        resource(Type.BROKER, ""),
        resource(Type.TOPIC, "orders", retention_ms="5000"),
    )
    assert [ErrorCode(row.error_code) for row in rows] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
    ]
    assert values_of(admin, ResourceType.TOPIC, "orders")["retention.ms"] == "5000"
