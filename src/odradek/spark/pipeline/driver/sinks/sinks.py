"""Sinks of a pipeline as queries of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
from odradek.spark.pipeline.driver.decoding.decoding import dead_letters
from odradek.spark.pipeline.driver.lineage import tables_needed
from odradek.spark.pipeline.driver.sinks.delta import merged_by_key
from odradek.spark.pipeline.driver.sinks.snapshot import snapshot_writer
from odradek.spark.pipeline.driver.sinks.topic_sinks import (
    LETTERS,
    ROWS_OUT,
    Configure,
    DeadLetterRows,
    PlannedQuery,
    into_topics,
    is_exactly_once,
    topic_options,
    with_letters,
)
from odradek.spark.pipeline.driver.sources import raw_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

_RECORD_COLUMNS = ("key", "value", "headers", "partition", "topic", "timestamp")


def planned_queries(
    spark: SparkSession,
    pipeline: PipelineModel,
    frames: Mapping[str, DataFrame],
    letter_writers: Mapping[str, str],
) -> list[PlannedQuery]:
    """One query a sink; dead letters go with one that writes into topics, or have a query of their own.

    `letter_writers`: the queries that have written the dead letters so far, by sources.
    """
    planned = [_query(sink, pipeline, frames[sink.input]) for sink in pipeline.sinks]
    topics = [source for source in pipeline.sources if isinstance(source, TopicSource)]
    with_letters = [source for source in topics if source.bad_records == "dead-letter"]
    for source in with_letters:
        planned = _with_dead_letters(spark, pipeline, source, planned, letter_writers.get(source.name))
    return planned


def start(query: PlannedQuery, checkpoint: str, identity: str, trigger: Mapping[str, Any]) -> Any:
    """Start one query; its rows are counted on their way to the sink.

    `identity` is of the pipeline and its checkpoint: transactional ids begin with it.
    """
    counted = query.frame.observe(ROWS_OUT, F.count(F.lit(1)).alias("rows"))
    if query.letters:
        counted = with_letters(counted, query)
    writer = counted.writeStream.queryName(query.name).outputMode(query.mode)
    writer = query.configure(writer, f"{identity}-{query.name}")
    writer = writer.option("checkpointLocation", f"{checkpoint}/{query.name}")
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.start()


def _query(sink: Sink, pipeline: PipelineModel, frame: DataFrame) -> PlannedQuery:
    if not frame.isStreaming:
        raise PipelineError(
            f"{sink.input} does not depend on a topic or stream that is followed", sink.place, "from"
        )
    configure: Configure
    if isinstance(sink, TopicSink):
        frame = _records(frame, sink)
        options = topic_options(pipeline.bootstrap_of(sink), sink.topic) | dict(sink.options)
        configure = into_topics(pipeline.connector_of(sink), options)
    elif isinstance(sink, FileSink):
        _check_columns(frame, (*sink.partition_by, *sink.key, *sink.order_by), sink)
        configure = _into_files(sink)
    elif isinstance(sink, SnapshotSink):
        _check_columns(frame, (*sink.key, *sink.order_by), sink)
        configure = lambda writer, _: writer.foreachBatch(snapshot_writer(sink))  # noqa: E731
    else:
        assert isinstance(sink, ConsoleSink)
        rows = sink.rows
        configure = lambda writer, _: writer.format("console").option("numRows", rows)  # noqa: E731
    return PlannedQuery(sink.name, frame, sink.mode, False, configure, sink)


def _into_files(sink: FileSink) -> Configure:
    if sink.kind == "delta" and sink.key:
        return lambda writer, identity: writer.foreachBatch(merged_by_key(sink, identity))

    def configure(writer: DataStreamWriter, _: str) -> DataStreamWriter:
        partitioned = writer.partitionBy(*sink.partition_by) if sink.partition_by else writer
        return partitioned.format(sink.kind).options(**sink.options).option("path", sink.path)

    return configure


def _with_dead_letters(
    spark: SparkSession,
    pipeline: PipelineModel,
    source: TopicSource,
    planned: list[PlannedQuery],
    writer: str | None,
) -> list[PlannedQuery]:
    """Let the dead letters of a source go with the first query that can have them in its transactions.

    `writer`: the query that has written them so far, which stays.
    """
    assert pipeline.dead_letters is not None
    bootstrap = pipeline.bootstrap_of(pipeline.dead_letters)
    frame = dead_letters(raw_records(spark, pipeline, source), source)
    rows = DeadLetterRows(f"{LETTERS}{source.name}", frame, pipeline.dead_letters.topic)
    able = [query.name for query in planned if _can_have_letters(query.sink, pipeline, source)]
    chosen = writer if writer is not None else next(iter(able), rows.name)
    if chosen == rows.name:
        configure = into_topics(pipeline.connector, topic_options(bootstrap, rows.topic))
        return [*planned, PlannedQuery(rows.name, rows.frame, "append", True, configure, None)]
    if chosen not in able:
        raise PipelineError(
            f"the dead letters of {source.name} were written by the sink {chosen}, which does not write them "
            "any more, and another query would write all of them again: undo the change of that sink, or set "
            "`checkpoint` to another directory, so that all sinks begin anew",
            source.place,
            "bad_records",
        )
    return [_together(query, rows, pipeline) if query.name == chosen else query for query in planned]


def _together(query: PlannedQuery, rows: DeadLetterRows, pipeline: PipelineModel) -> PlannedQuery:
    """A query that writes dead letters, too."""
    sink = query.sink
    assert isinstance(sink, TopicSink)
    # Each row has its topic then, which the option would overrule.
    options = topic_options(pipeline.bootstrap_of(sink), None) | dict(sink.options)
    configure = into_topics(pipeline.connector_of(sink), options)
    return replace(query, letters=(*query.letters, rows), configure=configure)


def _can_have_letters(sink: Sink | None, pipeline: PipelineModel, source: TopicSource) -> bool:
    letters = pipeline.dead_letters
    return (
        letters is not None
        and isinstance(sink, TopicSink)
        and sink.mode != "complete"
        and is_exactly_once(pipeline.connector_of(sink), sink.options)
        and pipeline.bootstrap_of(sink) == pipeline.bootstrap_of(letters)
        and source.name in tables_needed(pipeline, sink.input)
    )


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
