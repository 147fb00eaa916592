"""Files of a killed micro-batch are removed, and no others."""

from __future__ import annotations

import json
from pathlib import Path

from odradek.spark.pipeline.driver.checkpoint.leftovers import remove_leftovers

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

    assert set(remove_leftovers(str(tmp_path), is_new=False)) == {torn, crc}
    assert kept.exists()
    assert all(path.exists() for path in others)
    assert remove_leftovers("hdfs://there/out", is_new=True) == []


def test_before_the_first_commit_all_part_files_are_leftovers(tmp_path: Path):
    torn = tmp_path / NAME.format(0, 0)
    torn.write_text("x")
    assert remove_leftovers(str(tmp_path), is_new=True) == [torn]


def test_a_log_that_is_gone_or_of_a_moved_directory_lets_all_files_stay(tmp_path: Path):
    before, after = tmp_path / "before", tmp_path / "after"
    (before / "_spark_metadata").mkdir(parents=True)
    data_file = before / NAME.format(0, 0)
    data_file.write_text("x")
    (before / "_spark_metadata/0").write_text(
        "v1\n" + json.dumps({"path": f"file://{data_file}", "action": "add"}) + "\n"
    )
    before.rename(after)
    for is_new in (True, False):
        assert remove_leftovers(str(after), is_new=is_new) == []
    (after / "_spark_metadata/0").unlink()
    assert remove_leftovers(str(after), is_new=False) == []
    assert (after / data_file.name).exists()
