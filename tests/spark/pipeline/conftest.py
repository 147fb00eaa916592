"""Pipelines run in the session that all Spark tests share, from copies of the files."""

from __future__ import annotations

import importlib.util
import queue
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odradek.spark.pipeline.definition.load import load

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "pipelines"

collect_ignore = [] if importlib.util.find_spec("pyspark") else ["driver", "jobs"]


@dataclass
class Runner:
    """Runs pipelines to the end of what is there, and collects what they report."""

    spark: SparkSession
    directory: Path
    events: list[Mapping[str, Any]] = field(default_factory=list)
    order_after: Callable[[Mapping[str, Any]], str | None] = lambda _: None

    def run(self, file: str, trigger: str = "available-now") -> None:
        from odradek.spark.pipeline.driver.main import run_pipeline

        orders: queue.SimpleQueue[str] = queue.SimpleQueue()

        def report(event: Mapping[str, Any]) -> None:
            self.events.append(event)
            order = self.order_after(event)
            if order is not None:
                orders.put(order)

        run_pipeline(self.spark, load(str(self.directory / file)), trigger, report, orders)

    def write(self, file: str, text: str) -> None:
        (self.directory / file).write_text(text)

    def parquet(self, path: str) -> list[Row]:
        return self.spark.read.parquet(str(self.directory / path)).collect()

    def records(self, bootstrap: str, topic: str) -> list[Row]:
        """The committed records of a topic."""
        reader = self.spark.read.format("odradek").option("kafka.bootstrap.servers", bootstrap)
        reader = reader.option("kafka.isolation.level", "read_committed")
        return reader.option("subscribe", topic).option("includeHeaders", "true").load().collect()


@pytest.fixture
def runner(spark: SparkSession, tmp_path: Path) -> Runner:
    directory = tmp_path / "pipelines"
    shutil.copytree(EXAMPLES, directory)
    return Runner(spark, directory)
