"""A task's part: joins the transaction that the driver began, and writes the partitions that it owns.

A broker takes records of a producer only in one sequence for each partition, so that no two tasks may write
into the same one: rows are shuffled to the task that owns their partition. Spark must not repeat such a task.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zlib import crc32

from odradek.client.producer.batches.idempotence import ProducerId
from odradek.common.ids import TopicPartition
from odradek.records.arrow import key_partitions
from odradek.spark.sink.delivery import TableSender, named
from odradek.spark.sink.options import SinkOptions
from odradek.spark.sink.producers import Settings, drop_producer, producer_for
from odradek.spark.sink.rows import RowLayout, WrongRows, tables_by_topic
from odradek.spark.transactions import hooks
from odradek.spark.transactions.errors import RepeatedTask

if TYPE_CHECKING:
    import pyarrow as pa

PARTITION = "partition"
OWNER = "odradek_owner"


@dataclass(frozen=True, slots=True)
class Joined:
    """What a task needs to write in the transaction of one micro-batch."""

    options: SinkOptions
    name: str
    producer: ProducerId
    sequences: dict[TopicPartition, int]
    """Where earlier writes of the same transaction ended."""

    @property
    def settings(self) -> Settings:
        """Those of a producer that joins the transaction."""
        return transactional(self.options.producer, self.name)


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What one task has written."""

    task: int
    stage: int
    rows: int
    sequences: dict[TopicPartition, int] = field(default_factory=dict)


def transactional(settings: Settings, name: str) -> Settings:
    """The settings of a producer that writes in the transactions of a query."""
    return tuple(sorted((*settings, ("transactional_id", name))))


def owner(topic: str, partition: int, tasks: int) -> int:
    """The task that writes into a partition."""
    return (crc32(topic.encode()) + partition) % tasks


def placing(
    options: SinkOptions, name: str, layout: RowLayout, tasks: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for mapInArrow that adds to each row its partition and the task that owns it."""
    settings = transactional(options.producer, name)

    def place(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for topic, table in tables_by_topic(layout, batches, keeps_topic=True):
            yield from _placed(settings, topic, table, tasks)

    return place


def _placed(settings: Settings, topic: str, table: pa.Table, tasks: int) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    is_chosen = PARTITION in table.column_names
    with named(topic):
        producer = producer_for(settings)
        highest = pc.max(table.column(PARTITION)).as_py() if is_chosen else -1
        count = producer.partitions_for(topic, at_least=highest + 1)
    if is_chosen:
        partitions = table.column(PARTITION).cast(pa.int32())
        table = table.drop_columns([PARTITION])
        _check(topic, partitions, count)
    elif producer.config.partitioner_ignore_keys or "key" not in table.column_names:
        partitions = pa.array([random.randrange(count)] * table.num_rows, pa.int32())
    else:
        keys = table.column("key").combine_chunks()
        partitions = key_partitions(keys, count, random.randrange(count))
    first = crc32(topic.encode()) % tasks
    shifted = pc.add(partitions.cast(pa.int64()), first)
    owners = pc.subtract(shifted, pc.multiply(pc.divide(shifted, tasks), tasks)).cast(pa.int32())
    placed = table.append_column(PARTITION, partitions).append_column(OWNER, owners)
    yield from placed.combine_chunks().to_batches()


def _check(topic: str, partitions: Any, count: int) -> None:
    import pyarrow.compute as pc  # noqa: PLC0415

    bounds = pc.min_max(partitions)
    for partition in (bounds["min"].as_py(), bounds["max"].as_py()):
        if not 0 <= partition < count:
            raise WrongRows(
                f"cannot write into topic {topic!r}: topic {topic} has {count} partitions, and no {partition}"
            )


def writing(
    joined: Joined, layout: RowLayout
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for mapInArrow that writes the rows of one task; its one row is the pickled TaskReport."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415

        report = pickle.dumps(write_rows(joined, layout, batches))
        yield pa.record_batch([pa.array([report], pa.binary())], names=["report"])

    return write


def write_rows(joined: Joined, layout: RowLayout, batches: Iterable[pa.RecordBatch]) -> TaskReport:
    """In a task: deliver all rows as part of the transaction."""
    from pyspark import TaskContext  # noqa: PLC0415

    context = TaskContext.get()
    assert context is not None
    if context.attemptNumber():
        raise RepeatedTask(
            f"task {context.partitionId()} has failed and cannot be repeated within its transaction: "
            f"the whole micro-batch must be; start the query again"
        )
    sender, rows = None, 0
    try:
        for topic, table in tables_by_topic(layout, batches):
            if sender is None:
                hooks.reach(hooks.BEFORE_PRODUCE)
                with named(topic):
                    producer = producer_for(joined.settings)
                    producer.join_transaction(joined.producer, joined.sequences)
                sender = TableSender(producer)
            sender.send(topic, table)
            rows += table.num_rows
            hooks.reach(hooks.DURING_PRODUCE)
        if sender is None:
            return TaskReport(context.partitionId(), context.stageId(), 0)
        sender.finish()
        sequences = producer.transaction_sequences()
    except BaseException:
        drop_producer(joined.settings)
        raise
    hooks.reach(hooks.AFTER_PRODUCE)
    return TaskReport(context.partitionId(), context.stageId(), rows, sequences)
