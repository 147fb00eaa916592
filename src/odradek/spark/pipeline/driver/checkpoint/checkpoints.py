"""Checkpoints and sink directories: whose they are, and whether they can be used again.

    CHECKPOINT/pipeline.json      the pipeline's name, an id of its own, what each query keeps (state.py), and
                                  by sources the query that writes their dead letters
    CHECKPOINT/QUERY/             Spark's checkpoint of one query
    SINK/_odradek.json            the pipeline, the sink, the checkpoint's id, and whether it had rows before

Micro-batches of a sink count from 0 in each new checkpoint, and a directory skips those whose number it has.
So a directory belongs to one sink of one checkpoint.

Directories with a scheme (hdfs://, s3a://) are read and written by Spark's own file systems.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odradek.spark.pipeline.definition.directory_errors import refused_directory
from odradek.spark.pipeline.definition.errors import PipelineError, Place
from odradek.spark.pipeline.definition.model import FileSink, PipelineModel, SnapshotSink
from odradek.spark.pipeline.driver.checkpoint.leftovers import remove_leftovers
from odradek.spark.pipeline.driver.checkpoint.state import difference, kept_by
from odradek.spark.pipeline.driver.checkpoint.storage import Storage, storage_for
from odradek.spark.pipeline.driver.sinks.snapshot import CURRENT
from odradek.spark.pipeline.driver.sinks.topic_sinks import LETTERS, PlannedQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DESCRIPTION = "pipeline.json"
MARKER = "_odradek.json"
_SPARK_LOG, _DELTA_LOG = "_spark_metadata", "_delta_log"


def letter_writers(spark: SparkSession, pipeline: PipelineModel) -> dict[str, str]:
    """The queries that write dead letters, by sources, since another one would write all of them again."""
    description = _description(storage_for(spark, pipeline.checkpoint), pipeline)
    return {} if description is None else _letter_writers_in(description)


def _letter_writers_in(description: Mapping[str, Any]) -> dict[str, str]:
    """As written down; of an earlier version only those about which there is no doubt.

    That had queries named after the source, and queries that read the source twice, also of the past.
    """
    if "letters" in description:
        return dict(description["letters"])
    found: dict[str, list[str]] = {}
    for query, kept in description["queries"].items():
        names = [source["name"] for source in kept["sources"]]
        writes_of = {name for name in names if names.count(name) > 1}
        if query.startswith(LETTERS):
            writes_of.add(query.removeprefix(LETTERS))
        for name in writes_of:
            found.setdefault(name, []).append(query)
    return {name: writers[0] for name, writers in found.items() if len(writers) == 1}


def prepare(
    spark: SparkSession,
    pipeline: PipelineModel,
    queries: Sequence[PlannedQuery],
    clusters: Mapping[str, str | None],
) -> str:
    """Check all directories first, then write the marks; a failed check leaves everything as it was.

    `clusters`: cluster ids by bootstrap servers. Returns the id of the checkpoint.
    """
    storage = storage_for(spark, pipeline.checkpoint)
    kept = {query.name: kept_by(query, pipeline, clusters) for query in queries}
    before = _description(storage, pipeline)
    sinks = [sink for sink in pipeline.sinks if isinstance(sink, FileSink | SnapshotSink)]
    if before is not None:
        _check_same(before, kept, pipeline, {sink.name for sink in sinks if not _has_rows(spark, sink)})
    checkpoint_id = before["id"] if before is not None else uuid.uuid4().hex
    had_rows = {
        sink.name: _check_sink(spark, sink, checkpoint_id, f"{pipeline.checkpoint}/{sink.name}")
        for sink in sinks
    }
    everything = {**(before["queries"] if before is not None else {}), **kept}
    letters = _letter_writers_in(before) if before is not None else {}
    for query in queries:
        names = [query.name] if query.is_dead_letters else [one.name for one in query.letters]
        letters |= {name.removeprefix(LETTERS): query.name for name in names}
    description = {"pipeline": pipeline.name, "id": checkpoint_id, "queries": everything, "letters": letters}
    with refused_directory(pipeline.checkpoint, pipeline.place, "checkpoint"):
        storage.write(pipeline.checkpoint, DESCRIPTION, json.dumps(description, indent=1))
    for sink in sinks:
        mark = {
            "pipeline": pipeline.name,
            "sink": sink.name,
            "checkpoint": checkpoint_id,
            "had_rows": had_rows[sink.name],
        }
        is_new = not storage.names(f"{pipeline.checkpoint}/{sink.name}/commits")
        with refused_directory(sink.path, sink.place, sink.kind):
            storage_for(spark, sink.path).write(sink.path, MARKER, json.dumps(mark))
            if isinstance(sink, FileSink) and sink.kind == "parquet":
                remove_leftovers(sink.path, is_new=is_new)
    return str(checkpoint_id)


def _description(storage: Storage, pipeline: PipelineModel) -> dict[str, Any] | None:
    with refused_directory(pipeline.checkpoint, pipeline.place, "checkpoint"):
        description = _fields(
            storage,
            f"{pipeline.checkpoint}/{DESCRIPTION}",
            {"pipeline": str, "id": str, "queries": dict},
            "set `checkpoint` and the directories of the sinks to new ones, to begin anew",
            (pipeline.place, "checkpoint"),
        )
        others = [] if description is not None else storage.names(pipeline.checkpoint)
    if description is None:
        if others:
            raise PipelineError(
                f"the checkpoint directory {pipeline.checkpoint} is not empty, and no pipeline made it: "
                "set `checkpoint` to another one",
                pipeline.place,
                "checkpoint",
            )
        return None
    if description["pipeline"] != pipeline.name:
        raise PipelineError(
            f"the checkpoint directory {pipeline.checkpoint} is of the pipeline {description['pipeline']}: "
            "set `checkpoint` to another one",
            pipeline.place,
            "checkpoint",
        )
    return description


def _fields(
    storage: Storage, path: str, kinds: Mapping[str, type], otherwise: str, place: tuple[Place, str]
) -> dict[str, Any] | None:
    """The content of a file of ours, None if there is none; PipelineError if it is damaged."""
    directory, _, name = path.rpartition("/")
    try:
        text = storage.read(directory, name)
        found = None if text is None else json.loads(text)
    except ValueError:
        text = found = ""
    if text is None:
        return None
    if isinstance(found, dict) and all(isinstance(found.get(key), kind) for key, kind in kinds.items()):
        return found
    raise PipelineError(f"the file {path} is damaged: bring back a copy of it, or {otherwise}", *place)


def _check_same(
    before: dict[str, Any], kept: dict[str, Any], pipeline: PipelineModel, without_rows: set[str]
) -> None:
    """PipelineError if a checkpoint cannot be used again; any row fits a directory that has none."""
    for name, now in kept.items():
        then = before["queries"].get(name)
        if then is not None and name in without_rows:
            then = {**then, "contents": None}
        reason = None if then is None else difference(then, json.loads(json.dumps(now)))
        if reason is not None:
            raise PipelineError(
                f"the checkpoint of {name} cannot be used again: {reason}. Undo the change, or give the sink "
                "another name, and another directory if it has one, and the pipeline begins it anew",
                pipeline.place,
                "checkpoint",
            )


def _check_sink(
    spark: SparkSession, sink: FileSink | SnapshotSink, checkpoint_id: str, checkpoint: str
) -> bool:
    """PipelineError if a directory is not this sink's; whether rows of others were there before it."""
    storage = storage_for(spark, sink.path)
    with refused_directory(sink.path, sink.place, sink.kind):
        names = set(storage.names(sink.path))
        mark = _fields(
            storage,
            f"{sink.path}/{MARKER}",
            {"checkpoint": str, "sink": str},
            "name another directory",
            (sink.place, sink.kind),
        )
    if mark is None:
        is_foreign_delta = sink.kind == "delta" and _DELTA_LOG in names
        if names and not is_foreign_delta:
            raise _not_usable(sink, "is not empty, and this pipeline did not write it", "name another one")
        if not names and storage_for(spark, checkpoint).names(f"{checkpoint}/commits"):
            raise PipelineError(
                f"the directory {sink.path} is gone, and by the checkpoint {checkpoint} its rows are "
                "written: bring the directory back, or remove that checkpoint, and what the sources still "
                "have is written again",
                sink.place,
                sink.kind,
            )
        return is_foreign_delta
    if mark["checkpoint"] != checkpoint_id:
        raise _not_usable(
            sink,
            "has rows of another checkpoint, and they would be there twice",
            "set `checkpoint` to that one",
        )
    if mark["sink"] != sink.name:
        raise _not_usable(
            sink,
            f"has rows of the sink {mark['sink']}, and rows of {sink.name} would be missing",
            "name another one",
        )
    had_rows = bool(mark.get("had_rows", False))
    has_rows = names - {MARKER, _SPARK_LOG} or storage.names(f"{sink.path}/{_SPARK_LOG}")
    if has_rows and not had_rows and not storage_for(spark, checkpoint).names(checkpoint):
        raise _not_usable(
            sink,
            f"has rows, but the checkpoint {checkpoint} is gone, and new rows would be missing",
            "bring that back",
        )
    return had_rows


def _has_rows(spark: SparkSession, sink: FileSink | SnapshotSink) -> bool:
    """Whether a micro-batch is in the directory; files of one that failed do not count."""
    storage = storage_for(spark, sink.path)
    with refused_directory(sink.path, sink.place, sink.kind):
        if isinstance(sink, SnapshotSink):
            return CURRENT in storage.names(sink.path)
        log = _DELTA_LOG if sink.kind == "delta" else _SPARK_LOG
        return bool(storage.names(f"{sink.path}/{log}"))


def _not_usable(sink: FileSink | SnapshotSink, problem: str, otherwise: str) -> PipelineError:
    return PipelineError(
        f"the directory {sink.path} {problem}: empty it, or {otherwise}", sink.place, sink.kind
    )
