"""Brokers with both versions of transactions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_peer import running_kafka
from odradek.testing import Cluster
from spark.conftest import SETTINGS
from spark.transactions.versions import set_transaction_version


@pytest.fixture(scope="session")
def bootstrap_v1() -> Iterator[str]:
    """A broker of ours at transaction.version 1."""
    with Cluster(SETTINGS, process=True) as cluster:
        set_transaction_version(cluster.bootstrap, 1)
        yield cluster.bootstrap


@pytest.fixture(scope="session")
def kafka_v1(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Apache Kafka 3.9.2, which has transactions v1."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_VERSION", "3.9.2")
        with running_kafka(tmp_path_factory.mktemp("kafka-v1"), {"log.retention.ms": "-1"}) as address:
            yield address


@pytest.fixture(params=["bootstrap", "bootstrap_v1"], ids=["v2", "v1"])
def brokers(request: pytest.FixtureRequest) -> str:
    """Ours with transactions v2 and with v1."""
    return str(request.getfixturevalue(request.param))
