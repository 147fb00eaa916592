from __future__ import annotations

from confluent_kafka.admin import NewTopic

from broker.running import RunningBroker
from odradek.broker.requests.config_resources import ConfigResourceType
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ListConfigResourcesRequest


def listed(broker: RunningBroker, *types: int, version: int = 1) -> set[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=list(types))
    answer = broker.ask(ApiKey.LIST_CONFIG_RESOURCES, version, request)
    assert answer.error_code == 0
    return {(one.resource_type, one.resource_name) for one in answer.config_resources}


def test_topics_and_brokers_are_listed_by_type_or_all_together(broker, admin):
    for done in admin.create_topics([NewTopic("orders", 1, 1), NewTopic("bills", 1, 1)]).values():
        done.result(20)
    topics = {(ConfigResourceType.TOPIC, "orders"), (ConfigResourceType.TOPIC, "bills")}
    brokers = {(ConfigResourceType.BROKER, "0")}

    assert listed(broker) == topics | brokers
    assert listed(broker, ConfigResourceType.TOPIC) == topics
    assert listed(broker, ConfigResourceType.BROKER, ConfigResourceType.GROUP) == brokers


def test_version_0_lists_only_client_metrics_and_there_are_none(broker):
    assert listed(broker, version=0) == set()


def test_an_unknown_type_is_refused(broker):
    request = ListConfigResourcesRequest(resource_types=[99])
    answer = broker.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, request)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
