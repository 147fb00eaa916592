"""Clusters of processes have the settings that they are given, and sync what they promise to have synced."""

from __future__ import annotations

from pathlib import Path

from faults.cluster.brokers import FAULT_SETTINGS, KafkaNode, OdradekNode, kafka_brokers, odradek_brokers
from faults.cluster.zookeepers import properties


def test_brokers_have_default_settings_unless_others_are_given(tmp_path: Path) -> None:
    ours = odradek_brokers(tmp_path / "ours", 1, "sqlite:store").nodes[1]
    kafka = kafka_brokers(tmp_path / "kafka", 1).nodes[1]

    assert isinstance(ours, OdradekNode)
    assert isinstance(kafka, KafkaNode)
    assert ours.settings == {"broker.id": "1", "odradek.coordination": "sqlite:store"}
    assert kafka.settings == {"offsets.topic.replication.factor": "1"}


def test_brokers_that_faults_are_done_to_have_small_segments(tmp_path: Path) -> None:
    node = odradek_brokers(tmp_path, 1, **FAULT_SETTINGS).nodes[1]

    assert isinstance(node, OdradekNode)
    assert node.settings["log.segment.bytes"] == "5000000"


def test_zookeeper_syncs_every_transaction(tmp_path: Path) -> None:
    written = properties(tmp_path, 2181, [])

    assert not any(line.startswith("forceSync") for line in written)
