"""The same conversations about transactions with Apache Kafka 4.3.1 and with us: equal answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from broker.wire import WireClient, a_topic
from compat.transaction_requests import DIALOGUES, PATIENCE_S, TOPIC, Dialogue
from kafka_peer import running_kafka
from odradek.protocol.api_key import ApiKey
from odradek.testing import Cluster

pytestmark = [pytest.mark.java, pytest.mark.long]

SETTINGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "2"}


def prepared(address: str) -> str:
    with WireClient(address, PATIENCE_S) as client:
        client.ask(ApiKey.CREATE_TOPICS, 7, a_topic(TOPIC, 3))
    return address


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_kafka(tmp_path_factory.mktemp("kafka"), SETTINGS) as address:
        yield prepared(address)


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    with Cluster(SETTINGS) as cluster:
        yield prepared(cluster.bootstrap)


@pytest.mark.parametrize("name", DIALOGUES)
def test_kafka_and_we_hold_the_same_conversation(ours: str, kafka: str, name: str) -> None:
    assert held(ours, name) == held(kafka, name)


def held(address: str, name: str) -> list[tuple[str, Any]]:
    dialogue = Dialogue(address, name)
    with dialogue.client:
        DIALOGUES[name](dialogue)
    return dialogue.lines
