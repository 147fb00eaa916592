"""What a task does: read one range of offsets of one partition, as Arrow batches.

The consumer belongs to no group. It is kept for the next task of this process, since Spark uses a Python
worker again and again: a micro-batch then begins without connecting and without asking for metadata.
"""

from __future__ import annotations

import atexit
import logging
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from odradek.client.consumer.consumer import Consumer
from odradek.client.consumer.errors import CorruptRecords, NoOffset
from odradek.client.errors import ClientError, described
from odradek.common.errors import KafkaError
from odradek.spark.errors import DamagedRecords, DataLost, ReadFailed
from odradek.spark.row_filter import RowFilter
from odradek.spark.source.columns import ColumnWriter
from odradek.spark.source.offsets import OffsetRange
from odradek.spark.source.options import SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

BATCH_ROWS = 65_536
BATCH_BYTES = 32 * 1024 * 1024
"""So much is given to Spark at once: larger batches cost less for each row, and take memory off its heap."""

_FIRST_ROWS = 4096
"""Before the size of a row is known."""
_FETCH_BYTES = str(8 * 1024 * 1024)
_POLL_SLICE_S = 0.02
"""The end may be reached without rows, by control batches and gaps of compaction: so often it is checked."""
_MOST_KEPT = 4

_log = logging.getLogger("odradek.spark")
_Key = tuple[int, tuple[tuple[str, str], ...]]
_kept: dict[_Key, Consumer[bytes, bytes]] = {}


def read_range(
    options: SourceOptions, schema: StructType, row_filter: RowFilter, wanted: OffsetRange
) -> Iterator[pa.RecordBatch]:
    """All rows of a range that pass."""
    writer = ColumnWriter(schema, wanted.partition.topic)
    try:
        consumer = _consumer_for(options)
        start = wanted.start
        while start < wanted.end:
            consumer.assign_range(wanted.partition, start, wanted.end)
            try:
                yield from _rows(consumer, options, writer, row_filter, wanted)
                return
            except NoOffset:
                start = _after_gone(consumer, options, wanted)
    except CorruptRecords as error:
        _drop(options)
        raise DamagedRecords(
            f"{error}; check the log on its broker (odradek log verify), or read only what is before or after"
        ) from None
    except (KafkaError, ClientError) as error:
        _drop(options)
        raise ReadFailed(
            f"cannot read {wanted.partition} from {options.servers}: {described(error)}"
        ) from None


def _rows(
    consumer: Consumer[bytes, bytes],
    options: SourceOptions,
    writer: ColumnWriter,
    row_filter: RowFilter,
    wanted: OffsetRange,
) -> Iterator[pa.RecordBatch]:
    limit = _FIRST_ROWS
    position, progress_s = -1, time.monotonic()
    while True:
        table = consumer.poll_table(_POLL_SLICE_S, max_records=limit)
        for rows in table.to_batches():
            limit = _rows_at_once(rows)
            batch = _converted(rows, writer, row_filter, wanted)
            if batch is not None:
                yield batch
        before, position = position, consumer.position(wanted.partition)
        if position >= wanted.end:
            return
        now_s = time.monotonic()
        if position != before:
            progress_s = now_s
        elif now_s - progress_s > options.poll_timeout_ms / 1000:
            raise ReadFailed(
                f"no records of {wanted.partition} came from {options.servers} within "
                f"{options.poll_timeout_ms} ms, at offset {position} of {wanted.start} to {wanted.end}: "
                f"check that the leader is reachable, or raise kafkaConsumer.pollTimeoutMs"
            )


def _rows_at_once(rows: pa.RecordBatch) -> int:
    """How many rows to take next, by the size of these."""
    size = max(1, rows.nbytes // rows.num_rows)
    return int(min(BATCH_ROWS, max(1, BATCH_BYTES // size)))


def _converted(
    rows: pa.RecordBatch, writer: ColumnWriter, row_filter: RowFilter, wanted: OffsetRange
) -> pa.RecordBatch | None:
    rows = row_filter.rows(rows)
    if not rows.num_rows:
        return None
    batch = writer.batch(rows)
    offsets = rows.column("offset")
    if offsets[-1].as_py() >= wanted.end:
        import pyarrow.compute as pc  # noqa: PLC0415

        batch = batch.slice(0, pc.sum(pc.less(offsets, wanted.end)).as_py())
    return batch if batch.num_rows else None


def _after_gone(consumer: Consumer[bytes, bytes], options: SourceOptions, wanted: OffsetRange) -> int:
    """Where to go on when the offset is out of range; DataLost, or, without failOnDataLoss, a warning."""
    partition = wanted.partition
    first = consumer.beginning_offsets([partition])[partition]
    last = consumer.end_offsets([partition])[partition]
    position = consumer.position(partition)
    problem = (
        f"offsets {position} to {wanted.end} of {partition} were to be read, and its log has {first} "
        f"to {last}: retention or DeleteRecords removed records, or the topic was made anew"
    )
    if options.fails_on_data_loss:
        raise DataLost(
            f"{problem}; start at a later offset, or set failOnDataLoss=false to skip what is gone"
        )
    _log.warning("%s; what is gone is skipped", problem)
    return first if position < first else wanted.end


def _consumer_for(options: SourceOptions) -> Consumer[bytes, bytes]:
    """A consumer with these settings, new or kept. One task at a time runs in a worker."""
    key = _key(options)
    consumer = _kept.pop(key, None)
    if consumer is None:
        given: dict[str, Any] = {"max_partition_fetch_bytes": _FETCH_BYTES, **dict(options.consumer)}
        consumer = Consumer(**given, auto_offset_reset="none", allow_auto_create_topics=False)
        while len(_kept) >= _MOST_KEPT:
            _close(next(iter(_kept)))
    _kept[key] = consumer  # as the newest
    return consumer


def _key(options: SourceOptions) -> _Key:
    return os.getpid(), options.consumer  # a consumer does not survive a fork


def _drop(options: SourceOptions) -> None:
    """Keep a consumer no longer: after an error the next task begins with a new one."""
    _close(_key(options))


def _close(key: _Key) -> None:
    consumer = _kept.pop(key, None)
    if consumer is not None and key[0] == os.getpid():
        consumer.close(0)


@atexit.register
def _close_all() -> None:
    for key in list(_kept):
        _close(key)
