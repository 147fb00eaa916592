"""Files of a killed micro-batch are removed, and no others."""

from __future__ import annotations

import json
from pathlib import Path

from odradek.spark.pipeline.driver.leftovers import remove_leftovers

NAME = "part-0000{}-a03d3d3e-1c5f-4f0c-9d8c-3d0a4f8f3c3{}-c000.snappy.parquet"


def test_part_files_that_no_batch_committed_are_removed(tmp_path: Path):
    day = tmp_path / "date=2026-01-31"
    day.mkdir()
    kept, torn = day / NAME.format(0, 0), day / NAME.format(1, 1)
    others = [day / "mine.parquet", day / f".{kept.name}.crc", tmp_path / "_odradek.json"]
    crc = day / f".{torn.name}.crc"
    for path in (kept, torn, crc, *others):
        path.write_text("x")
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    (log / "0").write_text("v1\n" + json.dumps({"path": f"file://{kept}", "action": "add"}) + "\n")

    assert set(remove_leftovers(str(tmp_path))) == {torn, crc}
    assert kept.exists()
    assert all(path.exists() for path in others)
    assert remove_leftovers("hdfs://there/out") == []


def test_without_a_log_nothing_was_committed(tmp_path: Path):
    torn = tmp_path / NAME.format(0, 0)
    torn.write_text("x")
    assert remove_leftovers(str(tmp_path)) == [torn]
