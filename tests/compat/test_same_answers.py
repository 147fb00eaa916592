"""The same raw requests to Apache Kafka 4.3.1 and to us: the answers are equal, field by field.

The tables of requests name the few fields that may differ, and why.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.running import RunningBroker
from broker.wire import WireClient
from compat import admin_requests, record_requests
from compat.compared_requests import ApiRequest, answer_of, differences
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import IncrementalAlterConfigsRequest, InitProducerIdRequest

pytestmark = [pytest.mark.java, pytest.mark.slow]

PEERS = Path(__file__).resolve().parents[2] / "bench" / "peers"
SCENARIOS = record_requests.SCENARIOS | admin_requests.SCENARIOS
PATIENCE_SECONDS = 15

# Kafka's brokers receive changes after the client's response; a request that changes nothing is sent again.
READS = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.API_VERSIONS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.LIST_CONFIG_RESOURCES,
    }
)
NOT_HEARD_YET = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Apache Kafka with broker id 0, ready to give out producer ids."""
    data, port = tmp_path_factory.mktemp("kafka"), _free_port()
    settings = ["offsets.topic.num.partitions=2", "transaction.state.log.num.partitions=2"]
    command = [str(PEERS / "start"), str(data), str(port), *settings]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"NODE_ID": "0"})
    try:
        address = f"localhost:{port}"
        _wait_for_producer_ids(address)
        yield address
    finally:
        subprocess.run([PEERS / "stop", data], check=True)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with RunningBroker(tmp_path_factory.mktemp("ours")) as broker:
        _set_min_in_sync(broker)
        yield broker.address


@pytest.mark.parametrize("name", SCENARIOS)
def test_kafka_and_we_give_the_same_answers(ours: str, kafka: str, name: str) -> None:
    found: dict[str, list[str]] = {}
    for compared in SCENARIOS[name]:
        ours_says = answer_of(ours, compared)
        differing = _differing(ours_says, kafka, compared)
        if differing:
            found[f"{compared.name} (v{compared.version})"] = differing
    assert found == {}


def _differing(ours_says: Any, kafka: str, compared: ApiRequest) -> list[str]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        kafka_says = answer_of(kafka, compared)
        found = list(differences(ours_says, kafka_says))
        may_ask_again = compared.api_key in READS or _was_not_heard_yet(kafka_says)
        if not found or not may_ask_again or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def _was_not_heard_yet(kafka_says: Any) -> bool:
    """Whether a produce, or a deletion of records, was refused only because the topic is so new."""
    if not isinstance(kafka_says, dict):
        return False
    codes = {
        part.get("error_code")
        for topics, partitions in (("responses", "partition_responses"), ("topics", "partitions"))
        for row in kafka_says.get(topics) or []
        for part in row.get(partitions) or []
    }
    return bool(codes) and codes <= NOT_HEARD_YET


def _wait_for_producer_ids(address: str) -> None:
    """Kafka fetches its first block of ids when it is asked for the first one."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    deadline = time.monotonic() + PATIENCE_SECONDS
    with WireClient(address) as client:
        while client.ask(ApiKey.INIT_PRODUCER_ID, 4, request).error_code:
            assert time.monotonic() < deadline, "Kafka gives out no producer ids"
            time.sleep(0.05)


def _set_min_in_sync(broker: RunningBroker) -> None:
    """Kafka writes this down for all brokers when eligible leader replicas come into force; so it is told."""
    resources = IncrementalAlterConfigsRequest.Resources
    setting = resources.Configs(name="min.insync.replicas", config_operation=admin_requests.SET, value="1")
    asked = resources(resource_type=admin_requests.BROKER, resource_name="", configs=[setting])
    request = IncrementalAlterConfigsRequest(resources=[asked])
    (row,) = broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses
    assert row.error_code == 0


def _free_port() -> int:
    """One whose number plus 1000, the controller's, is in range too."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
        if port < 60_000:
            return port
