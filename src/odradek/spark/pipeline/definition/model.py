"""A pipeline as data: sources, steps and sinks. Python and YAML files both become these classes.

declare.py makes and checks the parts; checks.py checks how they fit together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from odradek.spark.pipeline.definition.errors import NOWHERE, Place
from odradek.spark.pipeline.definition.types import Field

METADATA_COLUMNS = ("_key", "_topic", "_partition", "_offset", "_timestamp", "_headers")
"""Beside the columns of its schema, a decoded topic has these of the record."""

RAW_FIELDS = (
    Field("key", "binary"),
    Field("value", "binary"),
    Field("topic", "string"),
    Field("partition", "int"),
    Field("offset", "bigint"),
    Field("timestamp", "timestamp"),
    Field("timestampType", "int"),
)
"""What a topic without a schema has: the columns of Spark's Kafka source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """How late rows may come, by a column of their own time."""

    column: str
    delay: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """How the value of a record becomes columns."""

    format: str  # json, avro, protobuf, arrow, text, none
    fields: tuple[Field, ...] = ()
    definition: bytes = b""  # an Avro schema as JSON, or a Protobuf descriptor set
    message: str = ""  # of Protobuf
    skip_bytes: int = 0  # a header before the payload, such as the 5 bytes of Confluent's serializers


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSource:
    """Topics read as one table."""

    name: str
    topics: tuple[str, ...]
    pattern: str | None
    bootstrap: str | None  # None: the pipeline's
    schema: Schema
    start: str | int  # earliest, latest or a time in milliseconds
    bad_records: str  # stop, dead-letter, drop
    data_loss: str  # stop, continue
    is_table: bool  # read once at the start, not followed
    watermark: Watermark | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay: str | None
    connector: str | None
    options: Mapping[str, str]
    place: Place = field(default=NOWHERE, compare=False)

    def reads(self, topic: str) -> bool:
        """Whether the topic is one of its own, by name or by the pattern, which means whole names."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.topics


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    """Files read as one table, once or as they appear."""

    name: str
    path: str
    format: str
    fields: tuple[Field, ...]
    is_stream: bool
    watermark: Watermark | None
    max_files_per_trigger: int | None
    options: Mapping[str, str]
    place: Place = field(default=NOWHERE, compare=False)


Source = TopicSource | FileSource


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStep:
    """A SELECT over sources and earlier steps."""

    name: str
    text: str
    watermark: Watermark | None = None
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonStep:
    """A function from DataFrames, named by its parameters, to a DataFrame."""

    name: str
    function: Callable[..., Any] = field(compare=False)
    inputs: tuple[str, ...]
    place: Place = field(default=NOWHERE, compare=False)


Step = SqlStep | PythonStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Where the rows of one source or step go; each sink is one query of Spark."""

    name: str
    input: str
    kind: str  # topic, parquet, delta, snapshot, console
    mode: str = "append"  # append, update, complete
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSink(Sink):
    """Records of a topic, exactly once unless the option `delivery` says otherwise."""

    topic: str | None  # None: the column named topic
    bootstrap: str | None
    format: str  # json, none
    connector: str | None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSink(Sink):
    """Files of a directory (Parquet, Delta), every row once."""

    path: str
    partition_by: tuple[str, ...]
    key: tuple[str, ...] = ()  # Delta only: rows replace those with the same key, unless they are older
    order_by: tuple[str, ...] = ()
    delete_when: str | None = None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSink(Sink):
    """The newest row of each key as Parquet files, replaced as a whole after each micro-batch."""

    path: str
    key: tuple[str, ...]
    order_by: tuple[str, ...]
    delete_when: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSink(Sink):
    """Rows printed at the terminal."""

    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """The topic for records that could not be decoded."""

    topic: str
    bootstrap: str | None = None
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """What happens after a failure that may pass: at most `attempts` restarts, each after a longer delay."""

    attempts: int = 5
    delay_s: float = 2.0
    max_delay_s: float = 60.0
    reset_after_s: float = 300.0  # a run as long as this counts as healthy


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineModel:
    """A whole pipeline."""

    name: str
    description: str
    bootstrap: str
    connector: str
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
    dead_letters: DeadLetters | None
    checkpoint: str
    trigger: str | None  # an interval; None: at once
    partitions: int  # of shuffles and of state
    restart: Restart
    spark: Mapping[str, str]
    place: Place = field(default=NOWHERE, compare=False)

    @property
    def file(self) -> str:
        """The pipeline file."""
        return self.place.file

    def bootstrap_of(self, part: TopicSource | TopicSink | DeadLetters) -> str:
        """The brokers of one source or sink."""
        return part.bootstrap or self.bootstrap

    def connector_of(self, part: TopicSource | TopicSink) -> str:
        """The data source that reads or writes: odradek, or kafka for Spark's own connector."""
        return part.connector or self.connector
