"""Records as Arrow tables, without a Python object each: the columns of records/arrow.py, and the topic.

column          Arrow type
topic           dictionary<int32, string>
…               as in records/arrow.py: offset, timestamp, timestamp_type, partition, key, value, headers
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from odradek.client.consumer.positions import PartitionPosition
from odradek.records.arrow import arrays, new_sink, same_number, schema
from odradek.records.kernels.column_sinks import RecordsSink

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Taken", "consumer_schema", "new_sink", "to_table"]

Taken = list[tuple[PartitionPosition, RecordsSink]]


@cache
def consumer_schema() -> pa.Schema:
    """The columns of every table that a consumer returns."""
    import pyarrow as pa  # noqa: PLC0415

    return schema().insert(0, pa.field("topic", _topic_type(), nullable=False))


def to_table(taken: Taken) -> pa.Table:
    """All records as a table; one chunk for what was fetched together of a partition."""
    import pyarrow as pa  # noqa: PLC0415

    chunks = [_chunk(state, sink) for state, sink in taken]
    return pa.Table.from_batches(chunks, consumer_schema())


def _chunk(state: PartitionPosition, sink: RecordsSink) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415

    numbers = same_number(pa.int32(), 0, len(sink))
    topics = pa.DictionaryArray.from_arrays(numbers, _dictionary(state.topic), safe=False)
    columns = [topics, *arrays(sink, state.partition)]
    return pa.RecordBatch.from_arrays(columns, schema=consumer_schema())


@lru_cache(maxsize=64)
def _dictionary(topic: str) -> pa.Array:
    import pyarrow as pa  # noqa: PLC0415

    return pa.array([topic])


def _topic_type() -> Any:
    import pyarrow as pa  # noqa: PLC0415

    return pa.dictionary(pa.int32(), pa.string())
