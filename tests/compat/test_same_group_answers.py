"""The same conversations about groups with Apache Kafka 4.3.1 and with us: equal answers, field by field."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from broker.wire import WireClient, a_topic
from compat.compared_requests import differences
from compat.group_requests import (
    APART_IN,
    DIALOGUES,
    PARTITIONS,
    PATIENCE_S,
    TOPIC,
    Dialogue,
    wait_for_coordinator,
)
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import MetadataRequest
from odradek.testing import Cluster

pytestmark = [pytest.mark.java, pytest.mark.slow]

PEERS = Path(__file__).resolve().parents[2] / "bench" / "peers"
SETTINGS = {"offsets.topic.num.partitions": 1, "group.consumer.assignment.interval.ms": 0}


class Broker(NamedTuple):
    address: str
    topic_id: bytes


def prepared(address: str) -> Broker:
    """With the topic that the dialogues are about, and a coordinator."""
    asked = MetadataRequest(topics=[MetadataRequest.Topics(name=TOPIC)])
    deadline = time.monotonic() + PATIENCE_S
    with WireClient(address) as client:
        client.ask(ApiKey.CREATE_TOPICS, 7, a_topic(TOPIC, PARTITIONS))
        wait_for_coordinator(address, "any")
        while True:
            (topic,) = client.ask(ApiKey.METADATA, 12, asked).topics
            if len(topic.partitions) == PARTITIONS:
                return Broker(address, topic.topic_id)
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    data, port = tmp_path_factory.mktemp("kafka"), free_port()
    settings = [f"{key}={value}" for key, value in SETTINGS.items()]
    subprocess.run(
        [str(PEERS / "start"), str(data), str(port), *settings],
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"NODE_ID": "0"},
    )
    try:
        yield prepared(f"localhost:{port}")
    finally:
        subprocess.run([PEERS / "stop", data], check=True)


@pytest.fixture(scope="module")
def ours() -> Iterator[Broker]:
    with Cluster(SETTINGS) as cluster:
        yield prepared(cluster.bootstrap)


@pytest.mark.parametrize("name", DIALOGUES)
def test_kafka_and_we_hold_the_same_conversation(ours: Broker, kafka: Broker, name: str) -> None:
    our_lines, kafkas_lines = (conversation(broker, name) for broker in (ours, kafka))
    found = {
        step: differing
        for (step, we_say), (_, kafka_says) in zip(our_lines, kafkas_lines, strict=True)
        if (differing := list(differences(we_say, kafka_says)))
    }
    assert found == {}


def conversation(broker: Broker, name: str) -> list[tuple[str, Any]]:
    dialogue = Dialogue(broker.address, broker.topic_id, name, APART_IN.get(name, frozenset()))
    try:
        DIALOGUES[name](dialogue)
    finally:
        dialogue.close()
    return dialogue.lines


def free_port() -> int:
    """One whose number plus 1000, the controller's, is in range too."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
        if port < 60_000:
            return port
