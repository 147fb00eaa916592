"""Which columns of a DataFrame make records, and how Arrow batches are cut into one table a topic.

    column       Spark type                                          without it, or null
    value        string or binary                                    it must be there; null: a tombstone
    key          string or binary                                    no key
    topic        string                                              the option topic
    headers      array<struct<key: string, value: binary>>           no headers
    partition    int (or another integer type)                       by the key as Java does
    timestamp    timestamp, only with the option includeTimestamp    now

Names count without case, as in Spark. Other columns are not looked at, as by Spark's own Kafka sink, so that
what was read from a topic can be written into one. It writes no timestamp either, which is why that needs
an option here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odradek.common.errors import OdradekError
from odradek.spark.sink.options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

GATHERED_ROWS = 65_536
GATHERED_BYTES = 8 * 1024 * 1024
"""So much is sent at once: Spark gives 10,000 rows at a time, too few for full batches of many partitions."""

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_BYTES = ("string", "binary")
_TYPES: dict[str, tuple[tuple[str, ...], str]] = {
    "value": (_BYTES, "string or binary"),
    "key": (_BYTES, "string or binary"),
    "topic": (("string",), "string"),
    "headers": (("array<struct<key:string,value:binary>>",), "array<struct<key:string,value:binary>>"),
    "partition": (_INTEGERS, "int"),
    "timestamp": (("timestamp", "timestamp_ntz"), "timestamp"),
}
NULL_TOPIC = "a row has null in the column topic: fill it, leave such rows out, or give the option topic"


class WrongRows(OdradekError):
    """Rows or columns that cannot become records."""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Where the columns of records are among those of the DataFrame; made on the driver, used by tasks."""

    columns: tuple[tuple[str, int], ...]  # name and place, without topic
    topic: str | None
    topic_place: int | None


def row_layout(schema: StructType, options: SinkOptions) -> RowLayout:
    """The layout of a DataFrame; WrongRows names the column that is missing or of a wrong type."""
    places = {field.name.lower(): place for place, field in enumerate(schema.fields)}
    if "value" not in places:
        raise WrongRows(
            f"the column value is missing: name a column of type string or binary so; "
            f"there are {', '.join(field.name for field in schema.fields)}"
        )
    if options.topic is None and "topic" not in places:
        raise WrongRows("no topic: give the option topic, or a column named topic for each row's own")
    wanted = [name for name in _TYPES if name in places]
    if not options.includes_timestamp:
        wanted = [name for name in wanted if name != "timestamp"]
    elif "timestamp" not in places:
        raise WrongRows("the option includeTimestamp is set, and there is no column named timestamp")
    if options.topic is not None:
        wanted = [name for name in wanted if name != "topic"]
    for name in wanted:
        _check_type(name, schema.fields[places[name]].dataType.simpleString())
    columns = tuple((name, places[name]) for name in wanted if name != "topic")
    return RowLayout(columns, options.topic, places["topic"] if "topic" in wanted else None)


def _check_type(name: str, found: str) -> None:
    allowed, wanted = _TYPES[name]
    is_collated_text = "string" in allowed and found.startswith("string ")
    if found not in allowed and not is_collated_text:
        raise WrongRows(f"the column {name} is of type {found}; it must be {wanted}: cast it")


def tables_by_topic(layout: RowLayout, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
    """The rows as tables of records, each for one topic; the rows of a topic keep their order."""
    columns = list(layout.columns)
    for rows in _gathered(batches):
        for topic, of_topic in _topics(layout, rows):
            table = of_topic.select([place for _, place in columns])
            table = table.rename_columns([name for name, _ in columns])
            for part in _with_and_without_partition(table):
                yield topic, part


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Several batches in one table of one chunk."""
    import pyarrow as pa  # noqa: PLC0415

    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= GATHERED_ROWS or size >= GATHERED_BYTES:
            yield pa.Table.from_batches(pending)
            pending, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(pending)


def _topics(layout: RowLayout, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    if layout.topic_place is None:
        assert layout.topic is not None
        yield layout.topic, rows
        return
    topics = rows.column(layout.topic_place)
    if topics.null_count:
        raise WrongRows(NULL_TOPIC)
    yield from _grouped(rows, topics)


def _grouped(rows: pa.Table, labels: Any) -> Iterator[tuple[Any, pa.Table]]:
    """The rows of each label, in their order."""
    import pyarrow.compute as pc  # noqa: PLC0415

    distinct = pc.unique(labels).to_pylist()
    for label in distinct:
        yield label, rows if len(distinct) == 1 else rows.filter(pc.equal(labels, label))


def _with_and_without_partition(table: pa.Table) -> Iterator[pa.Table]:
    """Rows with a null partition go where their key says; the producer wants them without the column."""
    import pyarrow.compute as pc  # noqa: PLC0415

    if "partition" not in table.column_names:
        yield table
        return
    partitions = table.column("partition")
    if partitions.null_count == 0:
        yield table
        return
    if partitions.null_count < len(partitions):
        yield table.filter(pc.is_valid(partitions))
        table = table.filter(pc.is_null(partitions))
    yield table.drop_columns(["partition"])
