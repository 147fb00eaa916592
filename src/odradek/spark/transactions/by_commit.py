"""Exactly once by the data source: tasks hand their rows to the driver's commit, which writes them.

Spark offers a Python sink no shuffle, so that rows of one partition are in several tasks, and a transaction
takes each partition's records from one producer only. The commit is called once for the tasks that count:
what Spark repeats or runs twice is written by nobody. Rows go through Spark as Arrow streams, compressed;
`spark.driver.maxResultSize` bounds them. `odradek.spark.exactly_once` has no such bound.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from odradek.common.ids import TopicPartition
from odradek.spark.sink.delivery import Delivery, TableSender, WrittenRows
from odradek.spark.sink.options import SinkOptions
from odradek.spark.sink.producers import drop_producer, producer_for
from odradek.spark.sink.rows import RowLayout, tables_by_topic
from odradek.spark.transactions import hooks, source_offsets
from odradek.spark.transactions.driver import QueryTransactions
from odradek.spark.transactions.errors import TransactionFailed
from odradek.spark.transactions.marker import MicroBatch
from odradek.spark.transactions.tasks import transactional

if TYPE_CHECKING:
    import pyarrow as pa

    from odradek.client.producer.batches.idempotence import ProducerId

_QUERY_ID = "sql.streaming.queryId"
_RUN_ID = "spark.jobGroup.id"
"""The group of the jobs of a query is the id of its run."""


@dataclass(frozen=True, slots=True)
class HandedOver(WrittenRows):
    """The rows of one task, as an Arrow stream for each table, and which query and run it belongs to."""

    tables: tuple[tuple[str, bytes], ...]
    query_id: str | None
    run_id: str | None


class ExactlyOnceByCommit(Delivery):
    """Every row of a micro-batch, or of a batch, is in its topic once, or none is."""

    def __init__(self, options: SinkOptions, layout: RowLayout) -> None:
        self.options = options
        self.layout = layout

    def write(self, batches: Iterable[pa.RecordBatch]) -> HandedOver:
        """In a task: pack the rows for the commit."""
        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        assert context is not None
        hooks.reach(hooks.BEFORE_PRODUCE)
        tables = [(topic, table) for topic, table in tables_by_topic(self.layout, batches)]
        rows = sum(table.num_rows for _, table in tables)
        packed = tuple((topic, _packed(table)) for topic, table in tables)
        hooks.reach(hooks.AFTER_PRODUCE)
        query_id, run_id = map(context.getLocalProperty, (_QUERY_ID, _RUN_ID))
        return HandedOver(rows, packed, query_id, run_id)

    def commit(self, written: Sequence[WriterCommitMessage | None], batch_id: int | None = None) -> None:
        """On the driver: write what the tasks have handed over, in one transaction with the marker."""
        handed = [one for one in written if isinstance(one, HandedOver)]
        batch = entry = None
        if batch_id is not None and handed:
            read = source_offsets.reader_of(self.options.checkpoint, batch_id)
            entry = source_offsets.log_entry(read, batch_id)
            batch = _micro_batch(handed, batch_id, entry)
        if batch is None and not any(one.rows for one in handed):
            return
        name = self.options.name or f"odradek-write-{uuid.uuid4()}"
        with QueryTransactions(name, dict(self.options.producer)) as transactions:
            try:
                producer = transactions.begin(batch)
                if producer is None:
                    return
                sequences = self._send(name, producer, handed)
                transactions.commit(batch, sequences, source_offsets.end_offsets(entry))
            except BaseException as error:
                cause = transactions.abort()
                if cause is not None and cause is not error:
                    raise cause from error
                raise

    def _send(
        self, name: str, producer: ProducerId, handed: Iterable[HandedOver]
    ) -> dict[TopicPartition, int]:
        """Write the rows, task by task; the partitions they went into."""
        settings = transactional(self.options.producer, name)
        joined = producer_for(settings)
        try:
            joined.join_transaction(producer)
            sender = TableSender(joined)
            for one in handed:
                for topic, packed in one.tables:
                    sender.send(topic, _unpacked(packed))
                    hooks.reach(hooks.DURING_PRODUCE)
            sender.finish()
            return joined.transaction_sequences()
        finally:
            drop_producer(settings)


def _micro_batch(handed: Sequence[HandedOver], batch_id: int, entry: str | None) -> MicroBatch | None:
    """What the marker says; None for a micro-batch without rows of which Spark does not tell the query."""
    known = next((one for one in handed if one.query_id), None)
    if known is not None and known.query_id is not None:
        batch = MicroBatch(known.query_id, batch_id, source_offsets.checksum(entry))
        return batch.of_run(known.run_id)
    if any(one.rows for one in handed):
        raise TransactionFailed(
            f"micro-batch {batch_id} cannot be written exactly once, and nothing of it is: Spark has not "
            f"told its tasks which query it belongs to (the local property {_QUERY_ID}), so that a "
            f"repetition would not be noticed; use odradek.spark.exactly_once, or set delivery=at-least-once"
        )
    return None


def _packed(table: pa.Table) -> bytes:
    import pyarrow as pa  # noqa: PLC0415

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _unpacked(packed: bytes) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415

    with pa.ipc.open_stream(packed) as stream:
        return stream.read_all()
