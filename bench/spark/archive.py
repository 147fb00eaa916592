"""A pipeline file, JSON of a topic to Parquet by date; the same by hand with the official connector."""

from __future__ import annotations

import queue
import shutil

from place import ORDERS, ROWS_A_BATCH, Place
from pyspark.sql import functions as F  # noqa: N812

from odradek.spark.pipeline.definition.load import load
from odradek.spark.pipeline.driver.main import run_pipeline

PIPELINE = "pipeline, JSON to Parquet"
FILE = """\
name: archive
bootstrap: {bootstrap}
sources:
  orders:
    topic: {topic}
    format: json
    schema: {{order_id: bigint not null, customer: string, amount: double, at: timestamp}}
    bad_records: drop
    max_offsets_per_trigger: {limit}
transforms:
  dated: SELECT order_id, customer, amount, at, date(at) AS date FROM orders
sinks:
  archive: {{from: dated, parquet: output, partition_by: [date]}}
"""
SCHEMA = "order_id bigint, customer string, amount double, at timestamp"


def run_file(place: Place) -> None:
    """The pipeline file, in the session that is warm."""
    directory = place.directory / "pipeline"
    directory.mkdir()
    file = directory / "archive.yaml"
    file.write_text(FILE.format(bootstrap=place.bootstrap, topic=ORDERS, limit=ROWS_A_BATCH))
    run_pipeline(place.spark, load(str(file)), "available-now", lambda _: None, queue.SimpleQueue())
    _check(place, directory)


def by_hand(place: Place) -> None:
    directory = place.directory / "by-hand"
    reader = place.spark.readStream.format("kafka").option("kafka.bootstrap.servers", place.bootstrap)
    reader = reader.options(subscribe=ORDERS, startingOffsets="earliest", maxOffsetsPerTrigger=ROWS_A_BATCH)
    order = F.from_json(F.col("value").cast("string"), SCHEMA).alias("order")
    orders = reader.load().select(order).select("order.*").filter("order_id IS NOT NULL")
    writer = orders.withColumn("date", F.to_date("at")).writeStream.format("parquet").partitionBy("date")
    writer = writer.option("path", str(directory / "output"))
    query = writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True)
    query.start().awaitTermination()
    _check(place, directory)


def _check(place: Place, directory: object) -> None:
    assert place.spark.read.parquet(f"{directory}/output").count() == place.orders
    shutil.rmtree(str(directory))
