"""One whole broker per test, and the administrators' clients of two libraries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from broker.running import RunningBroker

with warnings.catch_warnings():
    # It reads its schemas, as it is imported, by a function that Python 3.11 calls outdated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.admin


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path) as running:
        yield running


@pytest.fixture
def admin(broker: RunningBroker) -> AdminClient:
    """librdkafka's."""
    return AdminClient({"bootstrap.servers": broker.address})


@pytest.fixture
def python_admin(broker: RunningBroker) -> Iterator[kafka.admin.KafkaAdminClient]:
    """kafka-python's."""
    client = kafka.admin.KafkaAdminClient(bootstrap_servers=broker.address)
    yield client
    client.close()
