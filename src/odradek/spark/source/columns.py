"""The columns of the source, and how what a consumer gives becomes the Arrow batches that Spark takes.

    column          Spark type
    key             binary
    value           binary
    topic           string
    partition       int
    offset          bigint
    timestamp       timestamp
    timestampType   int
    headers         array<struct<key: string, value: binary>>, with includeHeaders; null where there are none

Names, types and order are those of Spark's own Kafka source. A schema given by `.schema(…)` chooses columns:
others are not made and not transferred.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from odradek.spark.errors import WrongColumns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

HEADERS = "headers array<struct<key: string, value: binary>>"
DDL = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)
_TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}
_TOPICS_AT_ONCE = 16


def ddl(*, includes_headers: bool) -> str:
    """The whole schema."""
    return f"{DDL}, {HEADERS}" if includes_headers else DDL


def check_columns(schema: StructType) -> None:
    """WrongColumns unless each column is one of ours, with its type."""
    for field in schema.fields:
        wanted = _TYPES.get(field.name)
        if wanted is None:
            raise WrongColumns(f"there is no column {field.name}; there are {', '.join(_TYPES)}")
        found = field.dataType.simpleString()
        if found != wanted:
            raise WrongColumns(
                f"the column {field.name} is of type {wanted}, not {found}: cast it after reading"
            )


class ColumnWriter:
    """Makes Arrow batches with the columns of a schema. Made in a task, for one partition."""

    def __init__(self, schema: StructType, topic: str) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

        self.topic = topic
        self.schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._makers = [_MAKERS[field.name] for field in self.schema]

    def batch(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The chosen columns of rows as `records.arrow` gives them."""
        import pyarrow as pa  # noqa: PLC0415

        arrays = [
            make(rows, self.topic, field.type) for make, field in zip(self._makers, self.schema, strict=True)
        ]
        if not arrays:  # a batch without columns still has rows
            empty = pa.StructArray.from_buffers(pa.struct([]), rows.num_rows, [None])
            return pa.RecordBatch.from_struct_array(empty)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


Maker = Callable[["pa.RecordBatch", str, Any], Any]


def _same(name: str) -> Maker:
    return lambda rows, _topic, _type: rows.column(name)


def _cast(name: str) -> Maker:
    return lambda rows, _topic, arrow_type: rows.column(name).cast(arrow_type)


def _topics(rows: pa.RecordBatch, topic: str, _type: Any) -> Any:
    count = rows.num_rows
    return _repeated(topic, 1 << max(count - 1, 1).bit_length())[:count]


@lru_cache(maxsize=_TOPICS_AT_ONCE)
def _repeated(topic: str, count: int) -> Any:
    """Kept, because pyarrow takes 40 ns for each row."""
    import pyarrow as pa  # noqa: PLC0415

    return pa.repeat(pa.scalar(topic), count)


def _headers(rows: pa.RecordBatch, _topic: str, arrow_type: Any) -> Any:
    """Null in place of an empty list, and nothing that is declared not to be null."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    headers = rows.column("headers")
    if headers.offset:
        headers = headers.filter(headers.is_valid())  # a copy: offsets and children of a slice do not match
    keys, values = headers.values.flatten()
    structs = pa.StructArray.from_arrays([keys, values], fields=list(arrow_type.value_type))
    has_some = pc.greater(pc.list_value_length(headers), 0)
    return pa.Array.from_buffers(
        arrow_type,
        len(headers),
        [has_some.buffers()[1], headers.buffers()[1]],
        children=[structs],
    )


_MAKERS: dict[str, Maker] = {
    "key": _same("key"),
    "value": _same("value"),
    "topic": _topics,
    "partition": _same("partition"),
    "offset": _same("offset"),
    "timestamp": _cast("timestamp"),
    "timestampType": _cast("timestamp_type"),
    "headers": _headers,
}
