"""Every test of the admin client runs against our broker and, where Java is wanted, against Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from client.eventually import eventually
from kafka_peer import running_kafka
from odradek.client.admin.admin import Admin
from odradek.client.admin.topics import CreatedTopic, TopicDescription
from odradek.testing import Cluster


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_kafka(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    with Cluster() as cluster:
        yield cluster.bootstrap


@pytest.fixture(
    params=["ours", pytest.param("kafka", marks=[pytest.mark.java, pytest.mark.slow])], scope="module"
)
def bootstrap(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


class PatientAdmin(Admin):
    """Makes a topic and waits: Kafka's brokers receive it a little after the controller has answered."""

    def make(self, topic: str, **settings: Any) -> CreatedTopic:
        made = self.create_topic(topic, **settings)
        wanted = made.num_partitions

        def is_led() -> bool:
            reported = self.describe_topics([topic])[topic]
            return (
                isinstance(reported, TopicDescription)
                and sum(partition.leader is not None for partition in reported.partitions) == wanted
            )

        eventually(is_led)
        return made


@pytest.fixture
def admin(bootstrap: str) -> Iterator[PatientAdmin]:
    with PatientAdmin(bootstrap_servers=bootstrap, retry_backoff_ms=10) as client:
        yield client


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name of this test alone."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:200]
