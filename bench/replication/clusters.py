"""The clusters that are compared: three brokers of odradek on each store, three of Apache Kafka."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
# The folder `broker` of the tests is a package, which hides the one of the benches.
sys.path.append(str(Path(__file__).resolve().parents[1] / "broker"))

from faults.cluster.brokers import DEFAULT_HEAP, Brokers, kafka_brokers, odradek_brokers
from faults.cluster.zookeepers import ZooKeepers

EMBEDDED, ON_ZOOKEEPER, KAFKA = "odradek, embedded store", "odradek, ZooKeeper", "Kafka"
BROKERS = 3


@contextmanager
def cluster(name: str, directory: Path, **settings: str) -> Iterator[Brokers]:
    """Three brokers with default settings, beside the given ones; gone at the end of the block."""
    zookeepers = ZooKeepers(directory) if name == ON_ZOOKEEPER else None
    brokers: Brokers | None = None
    try:
        coordination = ""
        if zookeepers is not None:
            zookeepers.start_all()
            coordination = f"zookeeper://{zookeepers.connect}"
        if name == KAFKA:
            brokers = kafka_brokers(directory, BROKERS, heap=DEFAULT_HEAP, **settings)
        else:
            brokers = odradek_brokers(directory, BROKERS, coordination, **settings)
        brokers.start_all()
        yield brokers
    finally:
        if brokers is not None:
            brokers.end()
        if zookeepers is not None:
            zookeepers.end()
        shutil.rmtree(directory, ignore_errors=True)
