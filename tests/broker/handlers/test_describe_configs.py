from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType
from kafka.admin import ConfigResource as PythonConfigResource
from kafka.admin import ConfigResourceType

from broker.running import RunningBroker
from odradek.broker.requests.config_resources import ConfigResourceType as Type
from odradek.broker.settings import catalog
from odradek.broker.settings.sources import Source
from odradek.common.config import Kind
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeConfigsRequest

Resource = DescribeConfigsRequest.Resources
OLDEST, NEWEST = 1, 4


@pytest.fixture(autouse=True)
def orders(admin) -> None:
    settings = {"retention.ms": "1000"}
    admin.create_topics([NewTopic("orders", 1, 1, config=settings)])["orders"].result(20)


def resource(number: int, name: str, keys: list[str] | None = None) -> Resource:
    return Resource(resource_type=number, resource_name=name, configuration_keys=keys)


def describe(broker: RunningBroker, *resources: Resource, version: int = NEWEST, **fields: object):
    request = DescribeConfigsRequest(resources=list(resources), **fields)
    return broker.ask(ApiKey.DESCRIBE_CONFIGS, version, request).results


def test_every_setting_of_a_topic_is_reported_with_its_source(broker, admin):
    asked = ConfigResource(ResourceType.TOPIC, "orders")
    entries = admin.describe_configs([asked])[asked].result(20)
    shown = {key for key, setting in catalog.TOPIC.items() if not setting.is_internal}
    assert shown <= set(entries)
    assert (entries["retention.ms"].value, entries["retention.ms"].source) == ("1000", Source.TOPIC)
    assert entries["segment.bytes"].source == Source.DEFAULT


def test_every_setting_of_a_broker_is_reported_with_its_source(broker, admin):
    asked = ConfigResource(ResourceType.BROKER, "0")
    entries = admin.describe_configs([asked])[asked].result(20)
    shown = {key for key, setting in catalog.BROKER.items() if not setting.is_internal}
    assert shown <= set(entries)
    assert entries["log.dirs"].source == Source.STATIC_BROKER
    assert entries["num.partitions"].is_read_only


def test_kafka_python_describes_a_topic(python_admin):
    asked = PythonConfigResource(ConfigResourceType.TOPIC, "orders")
    assert "retention.ms" in str(python_admin.describe_configs([asked]))


@pytest.mark.parametrize("version", range(OLDEST, NEWEST + 1))
def test_every_version_reports_synonyms_and_from_3_types_and_documents(broker, version):
    wanted = resource(Type.TOPIC, "orders", ["retention.ms", "segment.bytes"])
    (result,) = describe(
        broker, wanted, version=version, include_synonyms=True, include_documentation=version >= 3
    )
    retention, segment = result.configs
    assert [(one.name, one.value, one.source) for one in retention.synonyms] == [
        ("retention.ms", "1000", Source.TOPIC)
    ]
    assert [(one.name, one.value, one.source) for one in segment.synonyms] == [
        ("log.segment.bytes", str(2**30), Source.DEFAULT)
    ]
    if version >= 3:
        assert retention.config_type == Kind.LONG
        assert retention.documentation == catalog.TOPIC["retention.ms"].doc


def test_synonyms_and_documents_are_reported_only_when_asked_for(broker):
    (result,) = describe(broker, resource(Type.TOPIC, "orders"))
    assert not any(config.synonyms or config.documentation for config in result.configs)


@pytest.mark.parametrize("keys", [None, []])
def test_no_keys_means_all_keys(broker, keys):
    (result,) = describe(broker, resource(Type.TOPIC, "orders", keys))
    assert len(result.configs) > 20


def test_the_empty_broker_name_is_the_cluster_which_has_nothing_set_at_first(broker):
    (result,) = describe(broker, resource(Type.BROKER, ""))
    assert (result.error_code, result.configs) == (0, [])


@pytest.mark.parametrize(
    ("number", "name", "error_code"),
    [
        (Type.TOPIC, "unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Type.TOPIC, "../x", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (Type.BROKER, "7", ErrorCode.INVALID_REQUEST),
        (Type.BROKER, "zero", ErrorCode.INVALID_REQUEST),
        (Type.GROUP, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_described_has_its_own_error(broker, number, name, error_code):
    bad, good = describe(broker, resource(number, name), resource(Type.TOPIC, "orders"))
    assert (bad.error_code, bad.configs, bool(bad.error_message)) == (error_code, [], True)
    assert (good.error_code, good.error_message) == (0, None)


def test_a_resource_asked_for_a_hundred_thousand_times_is_reported_once(broker):
    started = time.monotonic()
    (result,) = describe(broker, *[resource(Type.BROKER, "0")] * 100_000)
    assert result.configs
    assert time.monotonic() - started < 10
