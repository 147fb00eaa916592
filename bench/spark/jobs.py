"""The jobs that are compared, each with the official connector (`kafka`) and with ours (`odradek`)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

from archive import PIPELINE, by_hand, run_file
from place import ROWS_A_BATCH, SOURCE, VALUE_BYTES, Place

from odradek.client.admin.admin import Admin


def read(place: Place, source: str, columns: str | None) -> Any:
    """A batch; only ours can be told its columns."""
    reader = place.spark.read.format(source).option("kafka.bootstrap.servers", place.bootstrap)
    if columns is not None and source == "odradek":
        reader = reader.schema(columns)
    return reader.option("subscribe", SOURCE).load()


def count(source: str, place: Place) -> None:
    assert read(place, source, "offset bigint").count() == place.rows


def values(source: str, place: Place) -> None:
    total = read(place, source, "value binary").selectExpr("sum(length(value)) AS n").first().n
    assert total == place.rows * VALUE_BYTES


def all_columns(source: str, place: Place) -> None:
    read(place, source, None).write.format("noop").mode("overwrite").save()


def streaming(source: str, place: Place) -> None:
    """Values, in micro-batches of half a million rows."""
    reader = place.spark.readStream.format(source).option("kafka.bootstrap.servers", place.bootstrap)
    if source == "odradek":
        reader = reader.schema("value binary")
    reader = reader.option("subscribe", SOURCE).option("startingOffsets", "earliest")
    frame = reader.option("maxOffsetsPerTrigger", ROWS_A_BATCH).load().selectExpr("length(value) AS n")
    state = place.directory / "state"
    query = frame.writeStream.format("noop").option("checkpointLocation", str(state))
    query = query.trigger(availableNow=True).start()
    query.awaitTermination()
    assert sum(progress.numInputRows for progress in query.recentProgress) == place.rows
    shutil.rmtree(state)


def to_topic(source: str, place: Place) -> None:
    frame = read(place, source, "key binary, value binary").select("key", "value")
    write(source, place, frame)


def write(source: str, place: Place, frame: Any) -> None:
    writer = frame.write.format(source).mode("append").option("kafka.bootstrap.servers", place.bootstrap)
    writer.option("topic", (topic := place.new_topic())).save()
    with Admin(bootstrap_servers=place.bootstrap) as admin:
        admin.delete_topic(topic)


def to_parquet(source: str, place: Place) -> None:
    frame = read(place, source, "key binary, value binary").select("key", "value")
    frame.write.mode("overwrite").parquet(str(place.directory / "parquet"))


def sink(source: str, place: Place) -> None:
    """Rows that Spark makes itself."""
    frame = place.spark.range(0, place.rows, 1, 4).selectExpr(
        "CAST(id AS STRING) AS key", "repeat(CAST(id % 10 AS STRING), 100) AS value"
    )
    write(source, place, frame)


def segments(place: Place) -> None:
    directory = next(place.data_dir.rglob(f"{SOURCE}-0")).parent
    reader = place.spark.read.format("odradek-segments").schema("value binary").option("subscribe", SOURCE)
    total = reader.load(str(directory)).selectExpr("sum(length(value)) AS n").first().n
    assert total == place.rows * VALUE_BYTES


def both(job: Callable[[str, Place], None]) -> dict[str, Callable[[Place], None]]:
    return {source: partial(job, source) for source in ("kafka", "odradek")}


JOBS: dict[str, dict[str, Callable[[Place], None]]] = {
    "batch, count": both(count),
    "batch, values": both(values),
    "batch, all columns": both(all_columns),
    "streaming, values": both(streaming),
    "topic to topic": both(to_topic),
    "topic to Parquet": both(to_parquet),
    "sink": both(sink),
    "segments, values": {"kafka": partial(values, "kafka"), "odradek": segments},
    PIPELINE: {"kafka": by_hand, "odradek": run_file},
}


AIMS = {
    "batch, count": "1.5",
    "batch, values": "1.5",
    "batch, all columns": "1.5",
    "streaming, values": "1",
    "topic to topic": "0.8",
    "topic to Parquet": "0.8",
    "sink": "0.8",
    "segments, values": "2",
    PIPELINE: "0.8",
}
"""Rows/s of ours as a multiple of the official connector's."""


def rows_of(job: str, place: Place) -> int:
    return place.orders if job == PIPELINE else place.rows


def transferred(place: Place) -> dict[str, str]:
    """What Spark counts as received from Python workers, for several choices of columns."""
    found = {}
    for columns in ("value binary", "key binary", "offset bigint", None):
        read(place, "odradek", columns).write.format("noop").mode("overwrite").save()
        found[columns or "all"] = received(place.spark)
    return found


def received(spark: Any) -> str:
    """Spark's own metric of the last query: "data returned from Python workers"."""
    store = spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    last = executions.apply(executions.size() - 1)
    metrics, texts = last.metrics(), store.executionMetrics(last.executionId())
    for index in range(metrics.size()):
        metric = metrics.apply(index)
        if "returned from Python" in metric.name():
            return str(texts.apply(metric.accumulatorId()))
    raise AssertionError("Spark has no such metric")
