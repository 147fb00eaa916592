"""Sources of a pipeline as DataFrames: topics as raw records, files as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.spark.pipeline.definition.arguments import milliseconds
from odradek.spark.pipeline.definition.model import FileSource, PipelineModel, TopicSource
from odradek.spark.pipeline.definition.types import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
_ISOLATION, _COMMITTED = "kafka.isolation.level", "read_committed"


def raw_records(spark: SparkSession, pipeline: PipelineModel, source: TopicSource) -> DataFrame:
    """The records of a topic source: key, value, topic, partition, offset, timestamp."""
    reader = spark.read if source.is_table else spark.readStream
    options = topic_options(pipeline, source)
    return reader.format(pipeline.connector_of(source)).options(**options).load()


def topic_options(pipeline: PipelineModel, source: TopicSource) -> dict[str, str]:
    """Options of the data source, which has the official connector's names.

    Only committed records by default: the topics that pipelines write have aborted micro-batches in them.
    """
    options = {
        _ISOLATION: _COMMITTED,
        "kafka.bootstrap.servers": pipeline.bootstrap_of(source),
        "failOnDataLoss": "true" if source.data_loss == "stop" else "false",
    }
    if source.pattern is not None:
        # The data sources look for a pattern anywhere in a name; a pipeline means whole names.
        options["subscribePattern"] = f"^(?:{source.pattern})$"
    else:
        options["subscribe"] = ",".join(source.topics)
    if isinstance(source.start, int):
        options["startingTimestamp"] = str(source.start)
        options["startingOffsetsByTimestampStrategy"] = "latest"
    elif not source.is_table:
        options["startingOffsets"] = source.start
    if source.max_offsets_per_trigger is not None:
        options["maxOffsetsPerTrigger"] = str(source.max_offsets_per_trigger)
    if source.min_offsets_per_trigger is not None:
        options["minOffsetsPerTrigger"] = str(source.min_offsets_per_trigger)
    if source.max_trigger_delay is not None:
        options["maxTriggerDelay"] = f"{milliseconds(source.max_trigger_delay)}ms"
    if source.schema.format == "none" or source.bad_records == "dead-letter":
        options["includeHeaders"] = "true"
    return options | dict(source.options)


def reads_committed(source: TopicSource) -> bool:
    """Whether a source is at its end where the committed records end."""
    return source.options.get(_ISOLATION, _COMMITTED) == _COMMITTED


def file_table(spark: SparkSession, source: FileSource) -> DataFrame:
    """Files as a table, or as a stream of the files that appear."""
    reader = (spark.readStream if source.is_stream else spark.read).format(source.format)
    if source.fields:
        reader = reader.schema(ddl(source.fields))
    if source.max_files_per_trigger is not None:
        reader = reader.option("maxFilesPerTrigger", source.max_files_per_trigger)
    return reader.options(**source.options).load(source.path)
