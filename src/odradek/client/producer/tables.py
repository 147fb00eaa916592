"""Whole tables to batches: rows are partitioned and encoded without a Python object for each.

columns.py says which columns there may be.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from odradek.client.producer.batches.accumulator import Accumulator, TopicQueues
from odradek.client.producer.batches.batch import DeliveryFuture, ProducerBatch
from odradek.client.producer.batches.columns import checked_columns
from odradek.records.arrow import EncodedRows, encode_rows, key_partitions, same_number
from odradek.records.errors import InvalidRecord

if TYPE_CHECKING:
    import pyarrow as pa

LEAST_BATCH_BYTES = 1_000_000
"""Rows that come together need not wait for one another, so that larger batches cost no time. Brokers take
batches of 1 MiB unless configured otherwise; one that does not has them split."""


class Table(Protocol):
    """Anything with columns that Arrow can read: an Arrow table, a polars or a pandas DataFrame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's own protocol for handing over tables."""


class DeliveredRows(NamedTuple):
    """Where some rows of a table are now: `record_count` records from `offset` on."""

    topic: str
    partition: int
    offset: int
    record_count: int


class TableDelivery:
    """The delivery of a table's rows."""

    def __init__(self, batches: list[ProducerBatch]) -> None:
        self._batches = batches

    def done(self) -> bool:
        """Whether all rows are delivered or have failed."""
        return all(batch.is_done for batch in self._leaves())

    def futures(self) -> list[DeliveryFuture]:
        """The future of one record in each batch, which stands for the rows of that batch."""
        return [batch.future(0) for batch in self._batches]

    def result(self, timeout: float | None = None) -> list[DeliveredRows]:
        """Wait until all rows are delivered; the first error if some cannot be."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.done():
            for batch in self._leaves():
                batch.future(0).result(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return [_delivered(batch) for batch in self._leaves()]

    def __await__(self) -> Generator[Any, None, list[DeliveredRows]]:
        while not self.done():
            yield from asyncio.gather(*(_end_of(batch) for batch in self._leaves())).__await__()
        return self.result(0)

    def _leaves(self) -> list[ProducerBatch]:
        """The batches that the rows are in now: one that a broker found too large was split."""
        return [one for batch in self._batches for one in batch.current_batches()]


def _delivered(batch: ProducerBatch) -> DeliveredRows:
    if batch.error is not None:
        raise batch.error.with_traceback(None)
    return DeliveredRows(batch.topic, batch.partition, batch.base_offset, batch.count)


async def _end_of(batch: ProducerBatch) -> None:
    await batch.future(0)


def highest_partition(table: pa.Table) -> int:
    """The highest partition that a row asks for; -1 if none does."""
    import pyarrow.compute as pc  # noqa: PLC0415

    highest = pc.max(table.column("partition")).as_py() if "partition" in table.column_names else None
    return -1 if highest is None else int(highest)


def table_batches(accumulator: Accumulator, topic: TopicQueues, table: pa.Table) -> Iterator[ProducerBatch]:
    """The batches that all rows make, in the order in which they must be added."""
    for partition, rows in _by_partition(accumulator, topic, table):
        batch = ProducerBatch(topic.name, partition, 0, time.monotonic() * 1000)
        batch.set_encoded(*rows)
        yield batch


def as_arrow(table: Any) -> pa.Table:
    """A table of any kind as Arrow's, with the columns that records are made of."""
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif hasattr(table, "to_arrow"):  # polars, whose own text type not every Arrow reads
        table = table.to_arrow()
    elif not isinstance(table, pa.Table):
        try:
            table = pa.table(table)
        except (TypeError, ValueError):
            raise TypeError(
                f"send_table takes an Arrow table, a polars or a pandas DataFrame, not {type(table).__name__}"
            ) from None
    return _with_timestamps(checked_columns(table))


def _with_timestamps(table: pa.Table) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    kind = pa.timestamp("ms", "UTC")
    now_ms = time.time_ns() // 1_000_000
    if "timestamp" not in table.column_names:
        return table.append_column("timestamp", same_number(kind, now_ms, table.num_rows))
    partition_column = table.column_names.index("timestamp")
    times = pc.cast(table.column(partition_column), options=pc.CastOptions(kind, allow_time_truncate=True))
    now = pa.scalar(now_ms, pa.int64()).cast(kind)
    return table.set_column(partition_column, "timestamp", pc.fill_null(times, now))


def _by_partition(
    accumulator: Accumulator, topic: TopicQueues, table: pa.Table
) -> Iterator[tuple[int, EncodedRows]]:
    max_bytes = min(max(accumulator.batch_size, LEAST_BATCH_BYTES), accumulator.max_record_bytes)
    for chunk in table.combine_chunks().to_batches():
        partitions = _partitions(accumulator, topic, chunk)
        if partitions is None:
            for rows in encode_rows(chunk, max_bytes):
                yield accumulator.switch(topic), rows
            continue
        for partition, group in _grouped(chunk, partitions):
            if not 0 <= partition < len(topic.queues):
                raise InvalidRecord(
                    f"topic {topic.name} has {len(topic.queues)} partitions, and no {partition}"
                )
            for rows in encode_rows(group, max_bytes):
                yield partition, rows


def _partitions(accumulator: Accumulator, topic: TopicQueues, chunk: pa.RecordBatch) -> Any:
    """The partition of each row, or None where whole batches may go anywhere."""
    import pyarrow as pa  # noqa: PLC0415

    names = chunk.schema.names
    if "partition" in names:
        partitions = chunk.column("partition").cast(pa.int32())
        if partitions.null_count:
            raise InvalidRecord("a row without partition")
        return partitions
    if "key" not in names or not accumulator.hashes_keys:
        return None
    keys = chunk.column("key")
    if keys.null_count == len(keys):
        return None
    return key_partitions(keys, len(topic.queues), accumulator.switch(topic))


def _grouped(chunk: pa.RecordBatch, partitions: Any) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each partition, in their order."""
    import pyarrow.compute as pc  # noqa: PLC0415

    counts = pc.value_counts(partitions)
    if len(counts) == 1:
        yield counts[0]["values"].as_py(), chunk
        return
    ordered = chunk.take(pc.array_sort_indices(partitions))  # stable
    start = 0
    for row in sorted(counts.to_pylist(), key=lambda one: one["values"]):
        yield row["values"], ordered.slice(start, row["counts"])
        start += row["counts"]
