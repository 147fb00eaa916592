"""What the tests of both sources share: DataFrames read with the official source and with ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(
    spark: SparkSession, source: str, bootstrap: str, topic: str | None = None, **options: Any
) -> DataFrame:
    reader = spark.read.format(source).option("kafka.bootstrap.servers", bootstrap)
    if topic is not None:
        reader = reader.option("subscribe", topic)
    return reader.options(**options).load()


def rows(frame: DataFrame) -> list[Any]:
    return sorted(frame.collect(), key=lambda row: (row.topic, row.partition, row.offset))


def both(spark: SparkSession, bootstrap: str, topic: str | None = None, **options: Any) -> list[Any]:
    """The rows of a batch, which are the same by both sources."""
    ours = read(spark, "odradek", bootstrap, topic, **options)
    theirs = read(spark, "kafka", bootstrap, topic, **options)
    assert ours.schema == theirs.schema
    found = rows(ours)
    assert found == rows(theirs)
    return found


def stream(spark: SparkSession, bootstrap: str, topic: str, state: Path, **options: Any) -> Any:
    """A stream of ours into Parquet files under `state`, drained; the query."""
    reader = spark.readStream.format("odradek").option("kafka.bootstrap.servers", bootstrap)
    frame = reader.option("subscribe", topic).options(**options).load()
    writer = frame.writeStream.format("parquet").option("path", str(state / "rows"))
    writer = writer.option("checkpointLocation", str(state / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(200)
    return query


def streamed(spark: SparkSession, state: Path) -> list[Any]:
    """The rows that `stream` has written."""
    return rows(spark.read.parquet(str(state / "rows")))
