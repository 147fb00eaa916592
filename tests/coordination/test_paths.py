"""Kafka's znode paths."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.common.ids import TopicPartition
from odradek.coordination import paths
from odradek.coordination.errors import DamagedPayload
from odradek.coordination.paths import ConfigEntity, EntityType

SAMPLES = json.loads((Path(__file__).parents[1] / "data" / "znodes" / "znodes.json").read_text())
KAFKAS_PATHS = {path for path, _ in SAMPLES}


def test_paths_are_kafkas() -> None:
    ours = {
        paths.CONTROLLER,
        paths.CONTROLLER_EPOCH,
        paths.CLUSTER_ID,
        paths.FEATURE,
        paths.LATEST_PRODUCER_ID_BLOCK,
        paths.REASSIGN_PARTITIONS,
        paths.PREFERRED_REPLICA_ELECTION,
        paths.broker_id(1),
        paths.topic("orders"),
        paths.partition_state(TopicPartition("orders", 1)),
        paths.ISR_CHANGE_PREFIX + "0000000007",
        paths.LOG_DIR_EVENT_PREFIX + "0000000000",
        paths.CONFIG_CHANGE_PREFIX + "0000000002",
        paths.broker_entity(1).path,
        paths.broker_entity(None).path,
        ConfigEntity(EntityType.USERS, "ü /*").path,
        ConfigEntity(EntityType.USERS, None).path,
        ConfigEntity(EntityType.CLIENTS, "app").path,
        paths.user_client_entity("anna", "app").path,
        paths.topic_entity("configured").path,
    }
    assert ours <= KAFKAS_PATHS


def test_a_sequential_path_reports_its_number() -> None:
    assert paths.sequence_number("/config/changes/config_change_0000000042") == 42
    with pytest.raises(ValueError, match="not the path of a sequential node"):
        paths.sequence_number("/config/changes")


@pytest.mark.parametrize("text", ["", "topics", "topics/", "planets/mars", "users/a/clients/", "users/a/b/c"])
def test_an_entity_path_of_nothing_is_damaged(text: str) -> None:
    with pytest.raises(DamagedPayload):
        paths.parse_entity_path(text)
