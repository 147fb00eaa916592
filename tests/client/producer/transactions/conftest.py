"""Brokers with transactions: ours, Apache Kafka 4.3.1 (transactions v2) and 3.9.2 (v1)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest

from client.producer.transactions.brokers import ON_KAFKA, make_topic
from kafka_peer import running_kafka
from odradek.testing import Cluster


@pytest.fixture(scope="session")
def ours() -> Iterator[str]:
    with Cluster() as cluster:
        yield cluster.bootstrap


@pytest.fixture(scope="session")
def kafka_v2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if given := os.environ.get("ODRADEK_TEST_KAFKA_V2"):  # a broker that runs already
        yield given
        return
    with running_kafka(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture(scope="session")
def kafka_v1(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if given := os.environ.get("ODRADEK_TEST_KAFKA_V1"):
        yield given
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_VERSION", "3.9.2")
        with running_kafka(tmp_path_factory.mktemp("kafka")) as address:
            yield address


@pytest.fixture(
    params=[
        "ours",
        pytest.param("kafka_v2", marks=ON_KAFKA),
        pytest.param("kafka_v1", marks=ON_KAFKA),
    ]
)
def bootstrap(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def made_topic(bootstrap: str, topic: str) -> str:
    return make_topic(bootstrap, f"{topic[:180]}-{secrets.token_hex(4)}")
