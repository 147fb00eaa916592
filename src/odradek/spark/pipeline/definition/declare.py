"""The functions of which pipeline files are made; YAML files call them too, with their keys as keywords.

Each checks its own arguments and raises PipelineError at the line where they are written.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from odradek.spark.pipeline.definition.arguments import (
    BAD_RECORDS,
    CONNECTORS,
    DEFAULT_BOOTSTRAP,
    FILE_FORMATS,
    MODES,
    SchemaText,
    WatermarkGiven,
    bootstrap_of,
    check_pattern,
    check_pipeline_name,
    check_topic,
    check_watermark,
    duration_of,
    fields_or_error,
    flag,
    input_of,
    names_of,
    one_of,
    options_of,
    path_of,
    positive,
    schema_of,
    seconds_of,
    sink_name,
    start_of,
    table_name,
    text_of,
    watermark_of,
)
from odradek.spark.pipeline.definition.errors import PipelineError, Place, calling_place
from odradek.spark.pipeline.definition.model import (
    RAW_FIELDS,
    ConsoleSink,
    DeadLetters,
    FileSink,
    FileSource,
    PipelineModel,
    PythonStep,
    Restart,
    Sink,
    SnapshotSink,
    Source,
    SqlStep,
    Step,
    TopicSink,
    TopicSource,
)

_NO_ORDER = "{} needs order_by: the columns that say which row is newer, such as _partition, _offset"


def topic(
    *topics: str,
    name: str | None = None,
    pattern: str | None = None,
    format: str = "none",  # noqa: A002
    schema: SchemaText | None = None,
    schema_file: str | None = None,
    message: str | None = None,
    skip_bytes: int = 0,
    start: str | datetime = "earliest",
    bad_records: str = "stop",
    data_loss: str = "stop",
    table: bool = False,
    watermark: WatermarkGiven | None = None,
    max_offsets_per_trigger: int | None = None,
    min_offsets_per_trigger: int | None = None,
    max_trigger_delay: str | None = None,
    bootstrap: str | None = None,
    connector: str | None = None,
    options: Mapping[str, Any] | None = None,
    place: Place | None = None,
) -> TopicSource:
    """Topics as a source, by names or by a regular expression; `name` is the table's name in SQL."""
    place = place or calling_place()
    if bool(topics) == (pattern is not None):
        raise PipelineError("a source has topics or a pattern, one of both", place, "topics")
    if pattern is not None:
        check_pattern(pattern, place)
    for one in topics:
        check_topic(one, place, "topics")
    name = table_name(name, topics[0] if topics else None, place)
    if table is True:
        limits = {
            "start": start if start == "latest" else None,
            "max_offsets_per_trigger": max_offsets_per_trigger,
            "min_offsets_per_trigger": min_offsets_per_trigger,
            "max_trigger_delay": max_trigger_delay,
        }
        for key, value in limits.items():
            if value is not None:
                raise PipelineError(f"a table is read as a whole: leave out {key}, or table", place, key)
    found = schema_of(format, schema, schema_file, message, skip_bytes, place)
    late = watermark_of(watermark, place)
    columns = [one.name for one in (RAW_FIELDS if found.format == "none" else found.fields)]
    check_watermark(late, [*columns, "_timestamp", "timestamp"], place)
    return TopicSource(
        name=name,
        topics=tuple(topics),
        pattern=pattern,
        bootstrap=bootstrap_of(bootstrap, place),
        schema=found,
        start=start_of(start, place),
        bad_records=one_of("bad_records", bad_records, BAD_RECORDS, place),
        data_loss=one_of("data_loss", data_loss, ("stop", "continue"), place),
        is_table=flag("table", table, place),
        watermark=late,
        max_offsets_per_trigger=positive("max_offsets_per_trigger", max_offsets_per_trigger, place),
        min_offsets_per_trigger=positive("min_offsets_per_trigger", min_offsets_per_trigger, place),
        max_trigger_delay=duration_of("max_trigger_delay", max_trigger_delay, place),
        connector=None if connector is None else one_of("connector", connector, CONNECTORS, place),
        options=options_of(options, place),
        place=place,
    )


def files(
    path: str,
    *,
    name: str,
    format: str = "parquet",  # noqa: A002
    schema: SchemaText | None = None,
    stream: bool = False,
    watermark: WatermarkGiven | None = None,
    max_files_per_trigger: int | None = None,
    options: Mapping[str, Any] | None = None,
    place: Place | None = None,
) -> FileSource:
    """Files of a directory as a source: read once, or with `stream` as new ones appear."""
    place = place or calling_place()
    found = () if schema is None else fields_or_error(schema, place)
    if flag("stream", stream, place) and not found:
        raise PipelineError("a stream of files needs a schema: `schema: id bigint, …`", place, "stream")
    late = watermark_of(watermark, place)
    check_watermark(late, [one.name for one in found], place)
    return FileSource(
        name=table_name(name, None, place),
        path=path_of("path", path, place),
        format=one_of("format", format, FILE_FORMATS, place),
        fields=found,
        is_stream=stream,
        watermark=late,
        max_files_per_trigger=positive("max_files_per_trigger", max_files_per_trigger, place),
        options=options_of(options, place),
        place=place,
    )


def sql(
    name: str, text: str, *, watermark: WatermarkGiven | None = None, place: Place | None = None
) -> SqlStep:
    """A SELECT over sources and earlier steps, by their names."""
    place = place or calling_place()
    if not isinstance(text, str) or not text.strip():
        raise PipelineError(f"the step {name} needs SQL: SELECT …", place)
    return SqlStep(
        name=table_name(name, None, place), text=text, watermark=watermark_of(watermark, place), place=place
    )


def python_step(function: Callable[..., Any]) -> PythonStep:
    """A function whose parameters name its inputs; a parameter `spark` gets the session."""
    code = getattr(function, "__code__", None)
    place = Place(code.co_filename, code.co_firstlineno) if code is not None else calling_place()
    inputs = tuple(inspect.signature(function).parameters)
    return PythonStep(
        name=table_name(getattr(function, "__name__", ""), None, place),
        function=function,
        inputs=inputs,
        place=place,
    )


def to_topic(
    topic: str | None = None,
    *,
    source: str,
    name: str | None = None,
    format: str = "json",  # noqa: A002
    mode: str = "append",
    bootstrap: str | None = None,
    connector: str | None = None,
    options: Mapping[str, Any] | None = None,
    place: Place | None = None,
) -> TopicSink:
    """Rows as records: `key`, `partition` and `headers` are columns; the others are the value as JSON.

    With `format="none"` the column `value` is the value. Without a topic, each row names its own in a column.
    """
    place = place or calling_place()
    if topic is not None:
        check_topic(topic, place, "topic")
    return TopicSink(
        name=sink_name(name, topic or input_of(source, place), place),
        input=input_of(source, place),
        kind="topic",
        mode=one_of("mode", mode, MODES, place),
        topic=topic,
        bootstrap=bootstrap_of(bootstrap, place),
        format=one_of("format", format, ("json", "none"), place),
        connector=None if connector is None else one_of("connector", connector, CONNECTORS, place),
        options=options_of(options, place),
        place=place,
    )


def to_parquet(
    path: str,
    *,
    source: str,
    name: str | None = None,
    partition_by: str | Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    place: Place | None = None,
) -> FileSink:
    """Rows as Parquet files of a directory, each row once."""
    place = place or calling_place()
    return FileSink(
        name=sink_name(name, input_of(source, place), place),
        input=input_of(source, place),
        kind="parquet",
        path=path_of("parquet", path, place),
        partition_by=names_of("partition_by", partition_by, place),
        options=options_of(options, place),
        place=place,
    )


def to_delta(
    path: str,
    *,
    source: str,
    name: str | None = None,
    partition_by: str | Sequence[str] = (),
    key: str | Sequence[str] = (),
    order_by: str | Sequence[str] = (),
    delete_when: str | None = None,
    mode: str = "append",
    options: Mapping[str, Any] | None = None,
    place: Place | None = None,
) -> FileSink:
    """Rows of a Delta table, each once; with a key, the newest row of each. Needs Delta's jars."""
    place = place or calling_place()
    keys = names_of("key", key, place)
    if mode == "update" and not keys:
        raise PipelineError("mode: update needs a key, by which rows are replaced", place, "mode")
    order = names_of("order_by", order_by, place)
    if keys and mode == "append" and not order:
        raise PipelineError(_NO_ORDER.format("a Delta table with a key"), place, "order_by")
    if (order or delete_when is not None) and not keys:
        raise PipelineError("order_by and delete_when need a key", place, "key")
    return FileSink(
        name=sink_name(name, input_of(source, place), place),
        input=input_of(source, place),
        kind="delta",
        mode=one_of("mode", mode, MODES, place),
        path=path_of("delta", path, place),
        partition_by=names_of("partition_by", partition_by, place),
        key=keys,
        order_by=order,
        delete_when=None if delete_when is None else text_of("delete_when", delete_when, place),
        options=options_of(options, place),
        place=place,
    )


def to_snapshot(
    path: str,
    *,
    source: str,
    key: str | Sequence[str],
    order_by: str | Sequence[str] = (),
    delete_when: str | None = None,
    mode: str = "append",
    name: str | None = None,
    place: Place | None = None,
) -> SnapshotSink:
    """The newest row of each key; `PATH/current` is always a whole and consistent set of Parquet files."""
    place = place or calling_place()
    keys = names_of("key", key, place)
    if not keys:
        raise PipelineError(
            "a snapshot needs a key: the columns by which a row replaces another", place, "key"
        )
    order = names_of("order_by", order_by, place)
    if mode == "append" and not order:
        raise PipelineError(_NO_ORDER.format("a snapshot"), place, "order_by")
    return SnapshotSink(
        name=sink_name(name, input_of(source, place), place),
        input=input_of(source, place),
        kind="snapshot",
        mode=one_of("mode", mode, MODES, place),
        path=path_of("snapshot", path, place),
        key=keys,
        order_by=order,
        delete_when=None if delete_when is None else text_of("delete_when", delete_when, place),
        place=place,
    )


def to_console(
    *,
    source: str,
    name: str | None = None,
    mode: str = "append",
    rows: int = 20,
    place: Place | None = None,
) -> ConsoleSink:
    """Rows printed at the terminal."""
    place = place or calling_place()
    return ConsoleSink(
        name=sink_name(name, f"{source}_console", place),
        input=input_of(source, place),
        kind="console",
        mode=one_of("mode", mode, MODES, place),
        rows=positive("rows", rows, place) or 20,
        place=place,
    )


def dead_letters(topic: str, *, bootstrap: str | None = None, place: Place | None = None) -> DeadLetters:
    """The topic for records that could not be decoded."""
    place = place or calling_place()
    check_topic(topic, place, "topic")
    return DeadLetters(topic=topic, bootstrap=bootstrap_of(bootstrap, place), place=place)


def restart(
    *,
    attempts: int = 5,
    delay: str = "2 seconds",
    max_delay: str = "1 minute",
    reset_after: str = "5 minutes",
    place: Place | None = None,
) -> Restart:
    """What happens after a failure that may pass; `attempts=0` never starts again."""
    place = place or calling_place()
    if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 0:
        raise PipelineError(f"attempts is {attempts!r}; it must be 0 or more", place, "attempts")
    return Restart(
        attempts=attempts,
        delay_s=seconds_of("delay", delay, place),
        max_delay_s=seconds_of("max_delay", max_delay, place),
        reset_after_s=seconds_of("reset_after", reset_after, place),
    )


def pipeline(
    name: str,
    *,
    sources: Iterable[Source],
    sinks: Iterable[Sink],
    steps: Iterable[Step | Callable[..., Any]] = (),
    bootstrap: str = DEFAULT_BOOTSTRAP,
    connector: str = "odradek",
    description: str = "",
    dead_letters: str | DeadLetters | None = None,
    checkpoint: str | None = None,
    trigger: str | None = None,
    partitions: int = 4,
    restart: Restart | None = None,
    spark: Mapping[str, Any] | None = None,
    place: Place | None = None,
) -> PipelineModel:
    """A whole pipeline; relative paths count from the directory of its file."""
    place = place or calling_place()
    check_pipeline_name(name, place)
    if not isinstance(description, str):
        raise PipelineError(f"description is {description!r}; it must be a text", place, "description")
    parts = (tuple(sources), tuple(steps), tuple(sinks))
    _check_kinds(*parts, place)
    letters = DeadLetters(topic=dead_letters, place=place) if isinstance(dead_letters, str) else dead_letters
    return PipelineModel(
        name=name,
        description=description,
        bootstrap=bootstrap_of(bootstrap, place) or DEFAULT_BOOTSTRAP,
        connector=one_of("connector", connector, CONNECTORS, place),
        sources=parts[0],
        steps=tuple(python_step(one) if callable(one) else one for one in parts[1]),
        sinks=parts[2],
        dead_letters=letters,
        checkpoint=path_of("checkpoint", f"{name}.checkpoint" if checkpoint is None else checkpoint, place),
        trigger=duration_of("trigger", trigger, place),
        partitions=positive("partitions", partitions, place) or 4,
        restart=restart or Restart(),
        spark=options_of(spark, place, "spark"),
        place=place,
    )


def _check_kinds(
    sources: tuple[object, ...], steps: tuple[object, ...], sinks: tuple[object, ...], place: Place
) -> None:
    """PipelineError for a part that is not what its list holds, as Python does not check it."""
    for key, parts, kinds, maker in (
        ("sources", sources, (TopicSource, FileSource), "topic(…) or files(…)"),
        ("steps", steps, (SqlStep, PythonStep), "sql(…) or a function"),
        ("sinks", sinks, (Sink,), "to_topic(…), to_parquet(…), …"),
    ):
        for part in parts:
            if not isinstance(part, kinds) and not (key == "steps" and callable(part)):
                raise PipelineError(f"{key} has {part!r}; make it with {maker}", place, key)
