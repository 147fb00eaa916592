"""The jobs that are compared, each with the official connector (`kafka`) and with ours (`odradek`)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from odradek.client.admin.admin import Admin
from odradek.client.producer.producer import Producer

SOURCE = "rows"
VALUE_BYTES = 100
ROWS_AT_ONCE = 50_000
ROWS_A_BATCH = 500_000


@dataclass(frozen=True)
class Place:
    """A session, a broker, and a directory for what is written."""

    spark: Any
    bootstrap: str
    data_dir: Path
    directory: Path
    rows: int

    def new_topic(self) -> str:
        name = f"target-{uuid4()}"
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            admin.create_topic(name, num_partitions=4)
        return name


def fill(place: Place, partitions: int) -> None:
    """Rows with keys of 1 to 5 bytes and values of 100 random ones, not compressed."""
    with Admin(bootstrap_servers=place.bootstrap) as admin:
        admin.create_topic(SOURCE, num_partitions=partitions)
    noise = os.urandom(1 << 20)
    values = [noise[index * 7 % 1_000_000 :][:VALUE_BYTES] for index in range(ROWS_AT_ONCE)]
    keys = [b"%d" % index for index in range(ROWS_AT_ONCE)]
    table = pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
    with Producer(bootstrap_servers=place.bootstrap, batch_size=1 << 17, linger_ms=20) as producer:
        for _ in range(place.rows // ROWS_AT_ONCE):
            producer.send_table(SOURCE, table).result()


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
}


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
