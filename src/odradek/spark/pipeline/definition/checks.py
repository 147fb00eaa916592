"""How the parts of a pipeline fit together: names, inputs, sinks that would read themselves."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from odradek.spark.pipeline.definition.errors import PipelineError
from odradek.spark.pipeline.definition.model import (
    METADATA_COLUMNS,
    DeadLetters,
    FileSink,
    FileSource,
    PipelineModel,
    PythonStep,
    Sink,
    SnapshotSink,
    TopicSink,
    TopicSource,
)


def check(pipeline: PipelineModel) -> None:
    """PipelineError at the first part that does not fit."""
    if not pipeline.sources:
        raise PipelineError("the pipeline has no sources", pipeline.place, "sources")
    if not pipeline.sinks:
        raise PipelineError("the pipeline has no sinks, so that it would do nothing", pipeline.place, "sinks")
    _check_names(pipeline)
    _check_inputs(pipeline)
    for source in pipeline.sources:
        if isinstance(source, TopicSource):
            _check_source(pipeline, source)
        elif source.is_stream is False and not source.fields and source.format == "csv":
            raise PipelineError("a CSV table needs a schema", source.place, "format")
    if all(_is_table(source) for source in pipeline.sources):
        raise PipelineError(
            "all sources are tables, which are read once: leave out `table` for a topic, or set "
            "`stream: true` for files, so that there is something to follow",
            pipeline.place,
            "sources",
        )
    for sink in pipeline.sinks:
        _check_sink(pipeline, sink)
    _check_targets(pipeline)


def tables(pipeline: PipelineModel) -> list[str]:
    """What SQL and sinks can name."""
    return [part.name for part in (*pipeline.sources, *pipeline.steps)]


def _is_table(source: TopicSource | FileSource) -> bool:
    return source.is_table if isinstance(source, TopicSource) else not source.is_stream


def _check_names(pipeline: PipelineModel) -> None:
    read = (*pipeline.sources, *pipeline.steps)
    for kind, parts in (("source or step", read), ("sink", pipeline.sinks)):
        seen: set[str] = set()
        for part in parts:
            if part.name.lower() in seen:
                raise PipelineError(
                    f"the name {part.name!r} is there twice: each {kind} needs its own", part.place
                )
            seen.add(part.name.lower())


def _check_inputs(pipeline: PipelineModel) -> None:
    known = [source.name for source in pipeline.sources]
    for step in pipeline.steps:
        if isinstance(step, PythonStep):
            for name in step.inputs:
                if name not in known and name != "spark":
                    raise PipelineError(
                        f"the parameter {name} of {step.name} names no source or step{_meant(name, known)}",
                        step.place,
                    )
        known.append(step.name)
    for sink in pipeline.sinks:
        if sink.input not in known:
            raise PipelineError(
                f"no source or step is named {sink.input!r}{_meant(sink.input, known)}", sink.place, "from"
            )


def _check_source(pipeline: PipelineModel, source: TopicSource) -> None:
    if source.schema.format in ("none", "text") and source.bad_records != "stop":
        raise PipelineError(
            f"every record fits the format {source.schema.format}, so that none is bad: leave out "
            "bad_records, or set `format: json` (or avro, protobuf, arrow)",
            source.place,
            "bad_records",
        )
    if source.bad_records == "dead-letter":
        if pipeline.dead_letters is None:
            raise PipelineError(
                "bad_records is dead-letter, and there is no topic for them: add `dead_letters: TOPIC`",
                source.place,
                "bad_records",
            )
        if source.is_table:
            raise PipelineError(
                "a table has no dead letters, because it is read again at each start: use stop or drop",
                source.place,
                "bad_records",
            )
    for field in source.schema.fields:
        if field.name in METADATA_COLUMNS:
            raise PipelineError(
                f"the field {field.name} has the name of a column of every record", source.place, "schema"
            )


def _check_sink(pipeline: PipelineModel, sink: Sink) -> None:
    if isinstance(sink, FileSink):
        overlap = set(sink.partition_by) & set(sink.key)
        if overlap:
            raise PipelineError(f"{overlap.pop()} is in partition_by and in key", sink.place, "key")
    if isinstance(sink, SnapshotSink) and "://" in sink.path:
        raise PipelineError(
            "a snapshot needs a local or mounted directory; elsewhere use a Delta sink with a key",
            sink.place,
            "snapshot",
        )
    if isinstance(sink, TopicSink):
        _check_no_loop(pipeline, sink)


def _check_no_loop(pipeline: PipelineModel, sink: TopicSink) -> None:
    for source in _sources_at(pipeline, sink):
        if sink.topic is None and sink.input == source.name:
            raise PipelineError(
                f"the sink writes into the topics that {source.name} reads, of the same brokers: a loop",
                sink.place,
                "topic",
            )
        if sink.topic is not None and source.reads(sink.topic):
            raise PipelineError(
                f"the sink writes into {sink.topic}, which the source {source.name} reads"
                f"{_by_pattern(source)}: a loop",
                sink.place,
                "topic",
            )


def _sources_at(pipeline: PipelineModel, writer: TopicSink | DeadLetters) -> list[TopicSource]:
    """The sources of the cluster that is written into; one broker in common makes it the same."""
    there = _servers(pipeline.bootstrap_of(writer))
    topics = [source for source in pipeline.sources if isinstance(source, TopicSource)]
    return [source for source in topics if there & _servers(pipeline.bootstrap_of(source))]


def _servers(bootstrap: str) -> set[str]:
    return {server.strip() for server in bootstrap.split(",")}


def _by_pattern(source: TopicSource) -> str:
    return "" if source.pattern is None else f" by its pattern {source.pattern!r}"


def _check_targets(pipeline: PipelineModel) -> None:
    targets: dict[tuple[str, str], str] = {}
    for sink in pipeline.sinks:
        if isinstance(sink, FileSink | SnapshotSink):
            target = ("path", sink.path)
        else:
            continue
        if target in targets:
            raise PipelineError(
                f"the sinks {targets[target]} and {sink.name} have one directory; each needs its own",
                sink.place,
            )
        targets[target] = sink.name
    letters = pipeline.dead_letters
    if letters is not None:
        for source in _sources_at(pipeline, letters):
            if source.reads(letters.topic):
                raise PipelineError(
                    f"dead_letters is the topic {letters.topic}, which the source {source.name} reads"
                    f"{_by_pattern(source)}",
                    letters.place,
                    "dead_letters",
                )


def _meant(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(names)}"
