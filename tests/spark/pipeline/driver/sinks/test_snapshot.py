"""The snapshot sink: one row a key, the newest of all micro-batches."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.spark.pipeline.definition.declare import to_snapshot
from odradek.spark.pipeline.driver.sinks.snapshot import snapshot_writer

Rows = list[tuple[str | None, int, str | None]]


class Snapshot:
    """Writes micro-batches and reads what is there after them."""

    def __init__(self, spark: Any, path: str, **sink: Any) -> None:
        self.spark = spark
        self.path = path
        self.write = snapshot_writer(to_snapshot(path, source="customers", key="id", **sink))

    def after(self, batch: int, rows: Rows) -> set[tuple[str | None, int, str | None]]:
        self.write(self.spark.createDataFrame(rows, "id string, at int, city string"), batch)
        return {tuple(row) for row in self.spark.read.parquet(f"{self.path}/current").collect()}


@pytest.fixture
def directory(tmp_path):
    return str(tmp_path / "customers")


def test_a_late_row_does_not_replace_a_newer_one_of_an_earlier_micro_batch(spark, directory):
    snapshot = Snapshot(spark, directory, order_by="at")
    assert snapshot.after(0, [("a", 5, "Linz"), ("a", 4, "Graz"), ("b", 1, "Wels")]) == {
        ("a", 5, "Linz"),
        ("b", 1, "Wels"),
    }
    assert snapshot.after(1, [("a", 3, "Graz"), ("b", 2, "Enns")]) == {("a", 5, "Linz"), ("b", 2, "Enns")}
    # Of two rows that are equally new, the one that came later counts.
    assert ("a", 5, "Steyr") in snapshot.after(2, [("a", 5, "Steyr")])


def test_rows_without_a_key_are_one_row(spark, directory):
    snapshot = Snapshot(spark, directory, order_by="at", delete_when="city IS NULL")
    assert snapshot.after(0, [(None, 1, "Linz"), (None, 2, "Graz")]) == {(None, 2, "Graz")}
    assert snapshot.after(1, [(None, 3, "Wels"), ("a", 3, "Enns")]) == {(None, 3, "Wels"), ("a", 3, "Enns")}
    assert snapshot.after(2, [(None, 4, None)]) == {("a", 3, "Enns")}


def test_updates_have_one_row_a_key_also_without_an_order(spark, directory):
    snapshot = Snapshot(spark, directory, mode="update")
    assert snapshot.after(0, [("a", 1, "Linz"), ("b", 1, "Wels")]) == {("a", 1, "Linz"), ("b", 1, "Wels")}
    assert snapshot.after(1, [("a", 0, "Graz")]) == {("a", 0, "Graz"), ("b", 1, "Wels")}
    assert len(snapshot.after(2, [("a", 2, "Enns"), ("a", 2, "Graz")])) == 2


def test_a_repeated_micro_batch_changes_nothing(spark, directory):
    snapshot = Snapshot(spark, directory, order_by="at")
    snapshot.after(7, [("a", 1, "Linz")])
    assert snapshot.after(7, [("a", 9, "Graz")]) == {("a", 1, "Linz")}


def test_names_of_columns_may_have_dots(spark, directory):
    write = snapshot_writer(to_snapshot(directory, source="customers", key="a.id", order_by="a.at"))
    for batch, rows in enumerate([[("a", 5), ("a", 4)], [("a", 3), ("b", 1)]]):
        write(spark.createDataFrame(rows, "`a.id` string, `a.at` int"), batch)
    found = spark.read.parquet(f"{directory}/current").collect()
    assert {tuple(row) for row in found} == {("a", 5), ("b", 1)}
