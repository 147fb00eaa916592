"""Sinks of a pipeline as queries of Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from odradek.spark.pipeline.definition.errors import PipelineError
from odradek.spark.pipeline.definition.model import (
    METADATA_COLUMNS,
    ConsoleSink,
    FileSink,
    PipelineModel,
    Sink,
    SnapshotSink,
    TopicSink,
    TopicSource,
)
from odradek.spark.pipeline.driver.decoding import dead_letters
from odradek.spark.pipeline.driver.delta import merged_by_key
from odradek.spark.pipeline.driver.snapshot import snapshot_writer
from odradek.spark.pipeline.driver.sources import raw_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

ROWS_OUT = "odradek_rows_out"
"""The observed metric that counts the rows of a micro-batch."""

_RECORD_COLUMNS = ("key", "value", "headers", "partition", "topic", "timestamp")


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """One query that is not started yet."""

    name: str
    frame: DataFrame
    mode: str
    is_dead_letters: bool
    configure: Callable[[DataStreamWriter], DataStreamWriter]
    sink: Sink | None  # None: the dead letters


def planned_queries(
    spark: SparkSession, pipeline: PipelineModel, frames: Mapping[str, DataFrame]
) -> list[PlannedQuery]:
    """One query a sink, and one for the dead letters of each source that has any."""
    planned = [_query(sink, pipeline, frames[sink.input]) for sink in pipeline.sinks]
    topics = [source for source in pipeline.sources if isinstance(source, TopicSource)]
    with_letters = [source for source in topics if source.bad_records == "dead-letter"]
    return planned + [_dead_letter_query(spark, pipeline, source) for source in with_letters]


def start(query: PlannedQuery, checkpoint: str, trigger: Mapping[str, Any]) -> Any:
    """Start one query; its rows are counted on their way to the sink."""
    counted = query.frame.observe(ROWS_OUT, F.count(F.lit(1)).alias("rows"))
    writer = counted.writeStream.queryName(query.name).outputMode(query.mode)
    writer = query.configure(writer).option("checkpointLocation", f"{checkpoint}/{query.name}")
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.start()


def _query(sink: Sink, pipeline: PipelineModel, frame: DataFrame) -> PlannedQuery:
    if not frame.isStreaming:
        raise PipelineError(
            f"{sink.input} does not depend on a topic or stream that is followed", sink.place, "from"
        )
    configure: Callable[[DataStreamWriter], DataStreamWriter]
    if isinstance(sink, TopicSink):
        frame = _records(frame, sink)
        options = _topic_options(pipeline.bootstrap_of(sink), sink.topic) | dict(sink.options)
        connector = pipeline.connector_of(sink)
        configure = lambda writer: writer.format(connector).options(**options)  # noqa: E731
    elif isinstance(sink, FileSink):
        _check_columns(frame, (*sink.partition_by, *sink.key), sink)
        configure = _into_files(sink)
    elif isinstance(sink, SnapshotSink):
        _check_columns(frame, (*sink.key, *sink.order_by), sink)
        configure = lambda writer: writer.foreachBatch(snapshot_writer(sink))  # noqa: E731
    else:
        assert isinstance(sink, ConsoleSink)
        rows = sink.rows
        configure = lambda writer: writer.format("console").option("numRows", rows)  # noqa: E731
    return PlannedQuery(sink.name, frame, sink.mode, False, configure, sink)


def _into_files(sink: FileSink) -> Callable[[DataStreamWriter], DataStreamWriter]:
    if sink.kind == "delta" and sink.key:
        return lambda writer: writer.foreachBatch(merged_by_key(sink))

    def configure(writer: DataStreamWriter) -> DataStreamWriter:
        partitioned = writer.partitionBy(*sink.partition_by) if sink.partition_by else writer
        return partitioned.format(sink.kind).options(**sink.options).option("path", sink.path)

    return configure


def _dead_letter_query(spark: SparkSession, pipeline: PipelineModel, source: TopicSource) -> PlannedQuery:
    letters = pipeline.dead_letters
    assert letters is not None
    frame = dead_letters(raw_records(spark, pipeline, source), source)
    options = _topic_options(pipeline.bootstrap_of(letters), letters.topic)

    def configure(writer: DataStreamWriter) -> DataStreamWriter:
        return writer.format(pipeline.connector).options(**options)

    return PlannedQuery(f"dead_letters_{source.name}", frame, "append", True, configure, None)


def _topic_options(bootstrap: str, topic: str | None) -> dict[str, str]:
    options = {"kafka.bootstrap.servers": bootstrap, "includeHeaders": "true"}
    return options if topic is None else options | {"topic": topic}


def _records(frame: DataFrame, sink: TopicSink) -> DataFrame:
    """The columns of records: by name, and the others as JSON where the sink says so."""
    columns = list(frame.columns)
    if sink.topic is None:
        _check_columns(frame, ("topic",), sink)
    if sink.format == "none":
        if "value" not in columns:
            raise PipelineError(
                f"format none needs a column named value; {sink.input} has {', '.join(columns)}",
                sink.place,
                "format",
            )
        return frame.select(*(name for name in _RECORD_COLUMNS if name in columns))
    own = [name for name in ("headers", "partition", *(() if sink.topic else ("topic",))) if name in columns]
    key = next((name for name in ("key", "_key") if name in columns), None)
    content = [name for name in columns if name not in (*own, "key", *METADATA_COLUMNS)]
    selected = [F.to_json(F.struct(*(F.col(f"`{name}`") for name in content))).alias("value")]
    if key is not None:
        is_bytes = frame.schema[key].dataType.simpleString() in ("binary", "string")
        selected.append((F.col(key) if is_bytes else F.col(key).cast("string")).alias("key"))
    return frame.select(*selected, *own)


def _check_columns(frame: DataFrame, wanted: tuple[str, ...], sink: Sink) -> None:
    for name in wanted:
        if name not in frame.columns:
            raise PipelineError(
                f"{sink.input} has no column {name}; it has {', '.join(frame.columns)}", sink.place, "from"
            )
