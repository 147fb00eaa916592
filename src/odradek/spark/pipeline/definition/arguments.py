"""Checks of single arguments of the functions of declare.py: values in, checked values out."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from odradek.spark.pipeline.definition.errors import NOWHERE, PipelineError, Place
from odradek.spark.pipeline.definition.model import Schema, Watermark
from odradek.spark.pipeline.definition.schema_files import schema_from_file
from odradek.spark.pipeline.definition.types import Field, WrongType, fields_of

FORMATS = ("json", "avro", "protobuf", "arrow", "text", "none")
BAD_RECORDS = ("stop", "dead-letter", "drop")
CONNECTORS = ("odradek", "kafka")
MODES = ("append", "update", "complete")
FILE_FORMATS = ("parquet", "json", "csv", "orc")
DEFAULT_BOOTSTRAP = "localhost:9092"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PIPELINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_DURATION = re.compile(r"\d+(\.\d+)?\s*(ms|millisecond|second|minute|hour|day|week)s?\Z", re.IGNORECASE)

SchemaText = str | Mapping[str, str] | Sequence[Field]
WatermarkGiven = tuple[str, str] | Mapping[str, str]


def table_name(name: str | None, otherwise: str | None, place: Place) -> str:
    """A name that SQL can use, given or made from another one."""
    if name is None:
        if otherwise is None:
            raise PipelineError("a source of a pattern needs a name, by which SQL knows it", place, "name")
        name = name_from(otherwise)
    if not isinstance(name, str) or not _NAME.match(name):
        raise PipelineError(f"the name {name!r} must be letters, digits and _, as in SQL", place, "name")
    return name


def name_from(topic: str) -> str:
    """The name of a table, or of a parameter in Python, made from that of a topic."""
    name = re.sub(r"\W", "_", topic, flags=re.ASCII)
    name = f"_{name}" if name[:1].isdigit() else name
    return f"{name}_" if keyword.iskeyword(name) else name


def sink_name(name: str | None, otherwise: str, place: Place) -> str:
    """The name of a sink, given or made from another one."""
    return table_name(name, otherwise, place)


def input_of(given: Any, place: Place) -> str:
    """The source or step whose rows a sink gets."""
    return text_of("from", given, place)


def text_of(key: str, given: Any, place: Place) -> str:
    """A text that is not empty."""
    if not isinstance(given, str) or not given:
        raise PipelineError(f"{key} is {given!r}; it must be a text", place, key)
    return given


def check_topic(name: Any, place: Place, key: str) -> None:
    """PipelineError unless Kafka allows this name."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name):
        raise PipelineError(f"{name!r} is not the name of a topic", place, key)


def check_pattern(pattern: str, place: Place) -> None:
    """PipelineError unless it is a regular expression."""
    try:
        re.compile(text_of("pattern", pattern, place))
    except (re.error, OverflowError, RecursionError) as error:
        raise PipelineError(
            f"the pattern {pattern!r} is not a regular expression: {error}", place, "pattern"
        ) from None


def bootstrap_of(given: str | None, place: Place) -> str | None:
    """host:port,host:port, checked."""
    if given is None:
        return None
    for server in str(given).split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise PipelineError(f"bootstrap: {server.strip()!r} is not host:port", place, "bootstrap")
    return str(given)


def schema_of(
    format_name: str,
    schema: SchemaText | None,
    schema_file: str | None,
    message: str | None,
    skip_bytes: int,
    place: Place,
) -> Schema:
    """The schema, from the file or in it."""
    one_of("format", format_name, FORMATS, place)
    if isinstance(skip_bytes, bool) or not isinstance(skip_bytes, int) or skip_bytes < 0:
        raise PipelineError(f"skip_bytes is {skip_bytes!r}; it must be 0 or more", place, "skip_bytes")
    if schema is not None and schema_file is not None:
        raise PipelineError("schema and schema_file are both given; one is enough", place, "schema_file")
    try:
        if schema_file is not None:
            return schema_from_file(
                Path(path_of("schema_file", schema_file, place)), format_name, message, skip_bytes
            )
        return _inline_schema(format_name, schema, skip_bytes, place)
    except WrongType as error:
        raise PipelineError(str(error), place, "schema_file" if schema_file else "schema") from None
    except OSError as error:
        raise PipelineError(
            f"cannot read {schema_file}: {error.strerror or error}", place, "schema_file"
        ) from None


def _inline_schema(format_name: str, schema: SchemaText | None, skip_bytes: int, place: Place) -> Schema:
    if format_name in ("none", "text"):
        if schema is not None:
            raise PipelineError(
                f"format {format_name} has no schema; set `format: json` (or avro, protobuf, arrow)",
                place,
                "schema",
            )
        if skip_bytes:
            raise PipelineError(
                f"format {format_name} skips no bytes: leave out skip_bytes, or take them off in SQL",
                place,
                "skip_bytes",
            )
        fields = (Field("value", "string"),) if format_name == "text" else ()
        return Schema(format=format_name, fields=fields)
    if format_name in ("avro", "protobuf"):
        raise PipelineError(f"format {format_name} needs its schema_file", place, "format")
    if schema is None:
        raise PipelineError(
            f"format {format_name} needs a schema; write one, or let `odradek pipeline check --infer` "
            "take it from a sample of the topic",
            place,
            "format",
        )
    return Schema(format=format_name, fields=fields_of(schema), skip_bytes=skip_bytes)


def fields_or_error(schema: SchemaText, place: Place) -> tuple[Field, ...]:
    """Fields of tables of files."""
    try:
        return fields_of(schema)
    except WrongType as error:
        raise PipelineError(str(error), place, "schema") from None


def start_of(given: str | datetime, place: Place) -> str | int:
    """earliest, latest, or a time in milliseconds; a time without a zone is in UTC."""
    if given in ("earliest", "latest"):
        return str(given)
    try:
        moment = given if isinstance(given, datetime) else datetime.fromisoformat(given)
    except (TypeError, ValueError):
        raise PipelineError(
            f"start is {given!r}; it must be earliest, latest or a time such as 2026-01-31T12:00Z",
            place,
            "start",
        ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def watermark_of(given: WatermarkGiven | None, place: Place) -> Watermark | None:
    """A watermark from a pair or a mapping."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        if set(given) != {"column", "delay"}:
            raise PipelineError("watermark has two keys, column and delay", place, "watermark")
        column, delay = given["column"], given["delay"]
    elif isinstance(given, (tuple, list)) and len(given) == 2:
        column, delay = given
    else:
        raise PipelineError(
            'watermark must be a column and a delay: ("at", "10 minutes")', place, "watermark"
        )
    if not isinstance(column, str):
        raise PipelineError(f"the watermark's column is {column!r}; it must be a name", place, "watermark")
    return Watermark(column=column, delay=needed_duration("watermark", delay, place))


def check_watermark(watermark: Watermark | None, columns: list[str], place: Place) -> None:
    """PipelineError unless the column is there."""
    if watermark is not None and watermark.column not in columns:
        raise PipelineError(
            f"the watermark's column {watermark.column!r} is not in the schema: {', '.join(columns)}",
            place,
            "watermark",
        )


def duration_of(key: str, given: str | None, place: Place) -> str | None:
    """A duration as Spark reads it."""
    if given is None:
        return None
    if not isinstance(given, str) or not _DURATION.match(given.strip()):
        raise PipelineError(f"{key} is {given!r}; write it like `10 seconds` or `5 minutes`", place, key)
    return re.sub(r"(?i)\s*ms\Z", " milliseconds", given.strip())  # Spark knows no ms


def needed_duration(key: str, given: str, place: Place) -> str:
    """A duration that must be there."""
    return duration_of(key, "" if given is None else given, place) or ""


def seconds_of(key: str, given: str, place: Place) -> float:
    """A duration in seconds."""
    text = needed_duration(key, given, place)
    number, unit = re.split(r"(?<=[\d.])\s*(?=[a-zA-Z])", text, maxsplit=1)
    units = {"ms": 0.001, "millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0}
    units |= {"day": 86400.0, "week": 604800.0}
    unit = unit.lower()
    return float(number) * units[unit if unit == "ms" else unit.rstrip("s")]


def milliseconds(duration: str) -> int:
    """A checked duration in milliseconds."""
    return round(seconds_of("", duration, NOWHERE) * 1000)


def positive(key: str, given: int | None, place: Place) -> int | None:
    """A whole number from 1 on, or None."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise PipelineError(f"{key} is {given!r}; it must be a whole number from 1 on", place, key)
    return given


def flag(key: str, given: bool, place: Place) -> bool:
    """True or False."""
    if not isinstance(given, bool):
        raise PipelineError(f"{key} is {given!r}; it must be true or false", place, key)
    return given


def one_of(key: str, given: Any, valid: Sequence[str], place: Place) -> str:
    """One of a few words."""
    if given not in valid:
        raise PipelineError(f"{key} is {given!r}; it must be {' or '.join(valid)}", place, key)
    return str(given)


def names_of(key: str, given: str | Sequence[str], place: Place) -> tuple[str, ...]:
    """Names of columns, as a list or with commas."""
    if not isinstance(given, str | list | tuple):
        raise PipelineError(f"{key} is {given!r}; it must be names of columns", place, key)
    names = [one.strip() for one in given.split(",")] if isinstance(given, str) else list(given)
    for one in names:
        if not isinstance(one, str) or not one:
            raise PipelineError(f"{key} must be names of columns", place, key)
    return tuple(names)


def options_of(given: Mapping[str, Any] | None, place: Place, key: str = "options") -> dict[str, str]:
    """Options as text, as Spark takes them."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise PipelineError(f"{key} must be names with values", place, key)
    for name, value in given.items():
        if not isinstance(value, str | int | float):
            raise PipelineError(f"{key}: {name} is {value!r}; it must be one value", place, key)
    return {str(name): _option_text(value) for name, value in given.items()}


def _option_text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def path_of(key: str, given: Any, place: Place) -> str:
    """A path with a scheme (hdfs://, s3a://) as given, any other absolute from the file's directory."""
    if not isinstance(given, str) or not given:
        raise PipelineError(f"{key} is {given!r}; it must be a path", place, key)
    if "://" in given:
        return given.removeprefix("file://") if given.startswith("file://") else given
    base = Path(place.file).resolve().parent if place.file and not place.file.startswith("<") else Path.cwd()
    return str((base / given).resolve())


def check_pipeline_name(name: Any, place: Place) -> None:
    """The name is part of paths and of Spark's names."""
    if not isinstance(name, str) or not _PIPELINE_NAME.match(name):
        raise PipelineError(f"the name {name!r} may have letters, digits, '.', '_' and '-'", place, "name")
