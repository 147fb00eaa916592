"""Checkpoints and sink directories: whose they are, and whether they can be used again.

    CHECKPOINT/pipeline.json      the pipeline's name, an id of its own, and what each query keeps (state.py)
    CHECKPOINT/QUERY/             Spark's checkpoint of one query
    SINK/_odradek.json            the pipeline, the sink and the checkpoint's id

Directories with a scheme (hdfs://, s3a://) are read and written by Spark's own file systems.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from odradek.spark.pipeline.definition.errors import PipelineError
from odradek.spark.pipeline.definition.model import FileSink, PipelineModel, SnapshotSink
from odradek.spark.pipeline.driver.leftovers import remove_leftovers
from odradek.spark.pipeline.driver.state import difference, kept_by
from odradek.spark.pipeline.driver.storage import storage_for
from odradek.spark.pipeline.driver.topic_sinks import PlannedQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DESCRIPTION = "pipeline.json"
MARKER = "_odradek.json"


def prepare(spark: SparkSession, pipeline: PipelineModel, queries: Sequence[PlannedQuery]) -> str:
    """Check all directories first, then write the marks; PipelineError leaves everything as it was.

    Returns the id of the checkpoint.
    """
    storage = storage_for(spark, pipeline.checkpoint)
    kept = {query.name: kept_by(query, pipeline) for query in queries}
    before = _description(storage, pipeline)
    if before is not None:
        _check_same(before, kept, pipeline)
    checkpoint_id = before["id"] if before is not None else uuid.uuid4().hex
    sinks = [sink for sink in pipeline.sinks if isinstance(sink, FileSink | SnapshotSink)]
    for sink in sinks:
        _check_sink(spark, sink, checkpoint_id)
    everything = {**(before["queries"] if before is not None else {}), **kept}
    description = {"pipeline": pipeline.name, "id": checkpoint_id, "queries": everything}
    storage.write(pipeline.checkpoint, DESCRIPTION, json.dumps(description, indent=1))
    for sink in sinks:
        mark = {"pipeline": pipeline.name, "sink": sink.name, "checkpoint": checkpoint_id}
        storage_for(spark, sink.path).write(sink.path, MARKER, json.dumps(mark))
        if isinstance(sink, FileSink) and sink.kind == "parquet":
            remove_leftovers(sink.path)
    return str(checkpoint_id)


def _description(storage: Any, pipeline: PipelineModel) -> dict[str, Any] | None:
    text = storage.read(pipeline.checkpoint, DESCRIPTION)
    if text is None:
        if storage.names(pipeline.checkpoint):
            raise PipelineError(
                f"the checkpoint directory {pipeline.checkpoint} is not empty, and no pipeline made it: "
                "set `checkpoint` to another one",
                pipeline.place,
                "checkpoint",
            )
        return None
    description: dict[str, Any] = json.loads(text)
    if description["pipeline"] != pipeline.name:
        raise PipelineError(
            f"the checkpoint directory {pipeline.checkpoint} is of the pipeline {description['pipeline']}: "
            "set `checkpoint` to another one",
            pipeline.place,
            "checkpoint",
        )
    return description


def _check_same(before: dict[str, Any], kept: dict[str, Any], pipeline: PipelineModel) -> None:
    for name, now in kept.items():
        then = before["queries"].get(name)
        reason = None if then is None else difference(then, json.loads(json.dumps(now)))
        if reason is not None:
            raise PipelineError(
                f"the checkpoint of {name} cannot be used again: {reason}. Undo the change, or give the sink "
                "another name and the pipeline begins it anew",
                pipeline.place,
                "checkpoint",
            )


def _check_sink(spark: SparkSession, sink: FileSink | SnapshotSink, checkpoint_id: str) -> None:
    storage = storage_for(spark, sink.path)
    text = storage.read(sink.path, MARKER)
    if text is None:
        names = storage.names(sink.path)
        is_foreign_delta = sink.kind == "delta" and "_delta_log" in names
        if names and not is_foreign_delta:
            raise PipelineError(
                f"the directory {sink.path} is not empty, and this pipeline did not write it: "
                "empty it, or name another one",
                sink.place,
                sink.kind,
            )
        return
    if json.loads(text)["checkpoint"] != checkpoint_id:
        raise PipelineError(
            f"the directory {sink.path} has rows of another checkpoint, and they would be there twice: "
            "empty it, or set `checkpoint` to that one",
            sink.place,
            sink.kind,
        )
