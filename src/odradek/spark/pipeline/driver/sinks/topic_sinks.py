"""Sinks that are topics: one transaction a micro-batch, with its dead letters in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from odradek.spark import exactly_once
from odradek.spark.pipeline.definition.model import Sink, TopicSink

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming import DataStreamWriter

ROWS_OUT = "odradek_rows_out"
"""The observed metric that counts the rows of a micro-batch."""

LETTERS = "dead_letters_"
"""Begins the name of the dead letters of a source, also that of a query of their own."""

OURS = "odradek"
_HEADERS = "array<struct<key: string, value: binary>>"

Configure = Callable[["DataStreamWriter", str], "DataStreamWriter"]
"""Gives a writer its sink; the text is the query's transactional id."""


@dataclass(frozen=True, slots=True)
class DeadLetterRows:
    """The dead letters of one source."""

    name: str  # also of the observed metric
    frame: DataFrame
    topic: str


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """One query that is not started yet."""

    name: str
    frame: DataFrame
    mode: str
    is_dead_letters: bool
    configure: Configure
    sink: Sink | None  # None: the dead letters
    letters: tuple[DeadLetterRows, ...] = ()


def is_exactly_once(connector: str, options: Mapping[str, str]) -> bool:
    """Whether a sink has transactions: unless it is Spark's own connector, or at least once was chosen."""
    return connector == OURS and options.get("delivery", "exactly-once") == "exactly-once"


def topic_options(bootstrap: str, topic: str | None) -> dict[str, str]:
    """Options of the data source that writes."""
    options = {"kafka.bootstrap.servers": bootstrap, "includeHeaders": "true"}
    return options if topic is None else options | {"topic": topic}


def into_topics(connector: str, options: Mapping[str, str]) -> Configure:
    """Write with the transactions of a query, or by the data source."""
    if not is_exactly_once(connector, options):
        return lambda writer, _: writer.format(connector).options(**options)

    return lambda writer, name: writer.foreachBatch(exactly_once(options, name=name))


def with_letters(rows: DataFrame, query: PlannedQuery) -> DataFrame:
    """The records of a sink and the dead letters of its sources, each with its topic."""
    sink = query.sink
    assert isinstance(sink, TopicSink)
    has_time = "timestamp" in rows.columns
    records = rows.select(*_record(rows, sink.topic, has_time=has_time))
    for letters in query.letters:
        counted = letters.frame.observe(letters.name, F.count(F.lit(1)).alias("rows"))
        records = records.unionByName(counted.select(*_record(counted, letters.topic, has_time=has_time)))
    return records


def _record(frame: DataFrame, topic: str | None, *, has_time: bool) -> list[Column]:
    """The columns of a record in one order and of one type; null where there are none."""
    kinds = {"key": "binary", "value": "binary", "headers": _HEADERS, "partition": "int"}
    if has_time:
        kinds["timestamp"] = "timestamp"
    columns = [
        (F.col(name) if name in frame.columns else F.lit(None)).cast(kind).alias(name)
        for name, kind in kinds.items()
    ]
    return [*columns, (F.col("topic") if topic is None else F.lit(topic)).alias("topic")]
