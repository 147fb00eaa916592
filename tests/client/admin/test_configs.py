from __future__ import annotations

from client.eventually import eventually
from odradek.client.admin.configs import (
    AlterOperation,
    ConfigChange,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from odradek.client.broker_errors import InvalidConfig, UnknownTopicOrPartition
from odradek.common.config import Kind


def of_topic(name: str) -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, name)


def test_settings_of_a_topic_are_changed_one_by_one(admin, topic):
    admin.make(topic, configs={"cleanup.policy": "compact"})
    resource = of_topic(topic)
    changes = [
        ConfigChange("retention.ms", "5000"),
        ConfigChange("cleanup.policy", "delete", AlterOperation.APPEND),
    ]
    assert admin.alter_configs({resource: changes}) == {resource: None}
    eventually(lambda: admin.describe_configs([resource])[resource]["retention.ms"].value == "5000")
    configs = admin.describe_configs([resource])[resource]
    assert configs["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert configs["cleanup.policy"].value == "compact,delete"

    admin.alter_configs({resource: [ConfigChange("retention.ms", operation=AlterOperation.DELETE)]})
    eventually(lambda: admin.describe_configs([resource])[resource]["retention.ms"].value != "5000")
    configs = admin.describe_configs([resource], names=["retention.ms"])[resource]
    assert list(configs) == ["retention.ms"]
    assert (configs["retention.ms"].value, configs["retention.ms"].source) == (
        "604800000",
        ConfigSource.DEFAULT_CONFIG,
    )


def test_types_documents_and_synonyms_are_reported_on_demand(admin, topic):
    admin.make(topic)
    resource = of_topic(topic)
    described = admin.describe_configs(
        [resource], names=["segment.bytes"], include_synonyms=True, include_documentation=True
    )
    entry = described[resource]["segment.bytes"]
    assert entry.type is Kind.INT
    assert entry.documentation
    assert entry.synonyms[-1].name == "log.segment.bytes"
    assert entry.synonyms[-1].source is ConfigSource.DEFAULT_CONFIG


def test_a_broker_is_asked_about_itself(admin, topic):
    (broker,) = admin.describe_cluster().brokers
    admin.make(topic)
    itself = ConfigResource(ResourceType.BROKER, str(broker.broker_id))
    described = admin.describe_configs([itself, of_topic(topic)])
    assert described[itself]["log.dirs"].is_read_only
    assert "log.dirs" not in described[of_topic(topic)]


def test_the_default_of_all_brokers_can_be_changed(admin):
    default = ConfigResource(ResourceType.BROKER, "")
    try:
        assert admin.alter_configs({default: [ConfigChange("log.retention.ms", "7000")]}) == {default: None}
    finally:
        change = ConfigChange("log.retention.ms", operation=AlterOperation.DELETE)
        assert admin.alter_configs({default: [change]}) == {default: None}


def test_a_wrong_value_is_an_error_with_the_brokers_words(admin, topic):
    admin.make(topic)
    resource, missing = of_topic(topic), of_topic(topic + "-missing")
    outcomes = admin.alter_configs(
        {resource: [ConfigChange("retention.ms", "soon")], missing: [ConfigChange("retention.ms", "1")]}
    )
    assert isinstance(outcomes[resource], InvalidConfig)
    assert "retention.ms" in str(outcomes[resource])
    assert isinstance(outcomes[missing], UnknownTopicOrPartition)


def test_validate_only_changes_nothing(admin, topic):
    admin.make(topic)
    resource = of_topic(topic)
    changes = {resource: [ConfigChange("retention.ms", "5000")]}
    assert admin.alter_configs(changes, validate_only=True) == {resource: None}
    assert admin.describe_configs([resource])[resource]["retention.ms"].value == "604800000"


def test_what_has_settings_is_listed(admin, topic):
    admin.make(topic)
    assert of_topic(topic) in admin.list_config_resources()
    assert all(one.type is ResourceType.BROKER for one in admin.list_config_resources([ResourceType.BROKER]))
