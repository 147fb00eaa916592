"""The Spark session of a pipeline: settings, jars, and the data sources of odradek."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from odradek.spark.pipeline.definition.model import PipelineModel

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def settings_of(pipeline: PipelineModel, given: Mapping[str, str]) -> dict[str, str]:
    """All settings of the session; those of the file win over ours, those of the command over both."""
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(pipeline.partitions),
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        "spark.sql.python.filterPushdown.enabled": "true",
        # A stop ends the query at once after its batch, and nobody waits for a batch that hangs.
        "spark.sql.streaming.stopTimeout": "60s",
    }
    if any(sink.kind == "delta" for sink in pipeline.sinks):
        settings |= _DELTA
    return settings | dict(pipeline.spark) | dict(given)


def new_session(pipeline: PipelineModel, master: str | None, given: Mapping[str, str]) -> SparkSession:
    """Start Spark; without a master here or in the environment, in this process on all processors."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(f"odradek pipeline {pipeline.name}")
    settings = settings_of(pipeline, given)
    chosen = master or settings.get("spark.master")
    if chosen or "MASTER" not in os.environ:
        builder = builder.master(chosen or "local[*]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def driver_jvm_pid(session: SparkSession) -> int:
    """The process of the JVM."""
    return int(session._jvm.java.lang.ProcessHandle.current().pid())
