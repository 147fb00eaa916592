"""Whose a log directory is."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.log.checkpoints import MetaProperties, encode_meta_properties
from odradek.log.directories.log_directory import recorded_properties
from odradek.log.errors import InconsistentMetaProperties


def directories(root: Path, *broker_ids: int | None) -> list[str]:
    paths = []
    for number, broker_id in enumerate(broker_ids):
        path = root / f"disk{number}"
        path.mkdir()
        if broker_id is not None:
            properties = MetaProperties(broker_id, "cluster", None)
            (path / "meta.properties").write_bytes(encode_meta_properties(properties))
        paths.append(str(path))
    return paths


def test_new_directories_record_no_broker(tmp_path: Path) -> None:
    assert recorded_properties([*directories(tmp_path, None, None), str(tmp_path / "missing")]) is None


def test_the_broker_id_is_found_in_any_of_the_directories(tmp_path: Path) -> None:
    found = recorded_properties(directories(tmp_path, None, 1001, 1001))
    assert found is not None
    assert found.broker_id == 1001


def test_directories_of_different_brokers_are_refused_by_name(tmp_path: Path) -> None:
    paths = directories(tmp_path, 1, 2)
    with pytest.raises(InconsistentMetaProperties, match=f"{paths[0]} to broker 1, {paths[1]} to broker 2"):
        recorded_properties(paths)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (path,) = directories(tmp_path, None)
    (Path(path) / "meta.properties").write_bytes(b"nonsense")
    with pytest.raises(InconsistentMetaProperties, match="restore it"):
        recorded_properties([path])
