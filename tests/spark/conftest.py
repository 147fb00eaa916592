"""One Spark session and one broker for all modules, run by the suite `spark` in .venv-spark."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.clients.librdkafka import Librdkafka
from kafka_peer import running_kafka
from odradek.testing import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "log.retention.ms": -1,
    # A transaction that is over its time is seen soon.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
}
SETUP = Path(__file__).resolve().parents[2] / "bench" / "peers" / "setup-spark"

# Without PySpark, which only .venv-spark has, there is nothing to collect here.
collect_ignore_glob = (
    []
    if importlib.util.find_spec("pyspark")
    else [
        "test_*.py",
        "source/test_s*.py",
        "transactions/test_*.py",
    ]
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder belongs to the suite `spark`, but for those that need no Spark."""
    here = Path(__file__).parent
    without_spark = {here / "pipeline" / "definition", here / "pipeline" / "running"}
    for item in items:
        if here in item.path.parents and not without_spark & set(item.path.parents):
            item.add_marker(pytest.mark.spark)


def jars_of(what: str) -> str:
    """Jars for `spark.jars`: of the official connector, or of Delta."""
    return subprocess.run([str(SETUP), what], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session with the official connector's jars."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = jars_of("connector")
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with Cluster(SETTINGS, process=True) as running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(cluster: Cluster) -> str:
    return cluster.bootstrap


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Apache Kafka: its address and its log directory."""
    directory = tmp_path_factory.mktemp("kafka")
    with running_kafka(directory, {"log.retention.ms": "-1"}) as address:
        yield address, directory / "logs"


@pytest.fixture
def librdkafka(bootstrap: str) -> Librdkafka:
    """Writes what Spark reads, and reads what Spark wrote."""
    return Librdkafka(bootstrap)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
