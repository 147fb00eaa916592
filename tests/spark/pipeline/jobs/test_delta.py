"""Delta tables, appended to and merged by key, while driver and broker are killed; needs Delta's jars."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from odradek import Admin
from odradek.client.admin.topics import NewTopic
from odradek.testing import Cluster
from spark.conftest import jars_of
from spark.pipeline.jobs.test_kills import Job
from spark.pipeline.terminal import a_terminal, batches

pytestmark = pytest.mark.long

PIPELINE = """\
name: delta
bootstrap: {bootstrap}
sources:
  orders:
    topic: orders
    format: json
    schema: {{order_id: bigint, version: int, is_deleted: boolean}}
    max_offsets_per_trigger: 80
transforms:
  numbered: SELECT *, _partition AS place, _offset AS number FROM orders
sinks:
  log: {{from: numbered, delta: log}}
  latest: {{from: orders, delta: latest, key: order_id, order_by: version, delete_when: is_deleted}}
spark: {{spark.jars: "{jars}", spark.databricks.delta.snapshotPartitions: 2}}
"""


def test_a_delta_table_has_every_row_once_and_the_newest_of_each_key(tmp_path):
    versions = [3, 1, 2, 7, 7, 5, 4, 9, 8, 6]  # of each order, in order of arrival: some come late
    rows = [(order_id, version, False) for version in versions for order_id in range(60)]
    rows += [(order_id, 20, True) for order_id in range(0, 60, 3)]
    with Cluster(process=True) as cluster, a_terminal(tmp_path) as terminal:
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", 2)])
        (tmp_path / "delta.yaml").write_text(
            PIPELINE.format(bootstrap=cluster.bootstrap, jars=jars_of("delta"))
        )
        job = Job(tmp_path, "delta.yaml", cluster, terminal)
        job.survive(
            "orders", [(b"%d" % order_id, order(order_id, version, gone)) for order_id, version, gone in rows]
        )

        check(tmp_path, rows)
        forget_last_commits(job.checkpoints())
        before = table_versions(tmp_path)
        code, _, errors = terminal.run("run", "delta.yaml", "--available-now", "--master", "local[2]")
        assert code == 0, errors
        assert table_versions(tmp_path) == before
        check(tmp_path, rows)


def order(order_id: int, version: int, is_deleted: bool) -> bytes:
    return json.dumps({"order_id": order_id, "version": version, "is_deleted": is_deleted}).encode()


def check(directory: Path, rows: list[tuple[int, int, bool]]) -> None:
    log = delta_rows(directory / "log")
    assert sorted((row["order_id"], row["version"], row["is_deleted"]) for row in log) == sorted(rows)
    assert len({(row["place"], row["number"]) for row in log}) == len(rows)
    latest = sorted((row["order_id"], row["version"]) for row in delta_rows(directory / "latest"))
    assert latest == [(order_id, 9) for order_id in range(60) if order_id % 3]


def delta_rows(table: Path) -> list[dict[str, Any]]:
    """The rows of a Delta table, by the files that its log has added and not removed."""
    files: set[str] = set()
    for entry in sorted((table / "_delta_log").glob("*.json")):
        for line in entry.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                assert "deletionVector" not in action["add"]
                files.add(action["add"]["path"])
            if "remove" in action:
                files.discard(action["remove"]["path"])
    return [row for file in files for row in pyarrow.parquet.read_table(table / file).to_pylist()]


def table_versions(directory: Path) -> list[int]:
    return [len(list((directory / table / "_delta_log").glob("*.json"))) for table in ("log", "latest")]


def forget_last_commits(checkpoints: list[Path]) -> None:
    """As if the driver had been killed after the commit of Delta, and before its own."""
    for checkpoint in checkpoints:
        last = batches(checkpoint, "commits")[-1]
        (checkpoint / "commits" / str(last)).unlink()
        (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
