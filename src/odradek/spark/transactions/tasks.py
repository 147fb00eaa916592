"""A task's part: joins the transaction that the driver began, and writes the partitions that it owns.

A broker takes records of a producer only in one sequence for each partition, so that no two tasks may write
into the same one: rows are shuffled to the task that owns their partition. Spark must not repeat such a task.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from odradek.client.producer.batches.idempotence import ProducerId
from odradek.common.ids import TopicPartition
from odradek.records.arrow import key_partitions
from odradek.spark.sink.delivery import TableSender, named
from odradek.spark.sink.options import SinkOptions
from odradek.spark.sink.producers import Settings, drop_producer, producer_for
from odradek.spark.sink.rows import NULL_TOPIC, RowLayout, WrongRows, tables_by_topic
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


def choosing_partitions(options: SinkOptions, name: str, columns: Sequence[str]) -> Callable[..., pa.Array]:
    """A function for arrow_udf: the partitions of rows, by their topics and `columns`: "partition", "key"."""
    settings = transactional(options.producer, name)

    def choose(topics: pa.Array, *values: pa.Array) -> pa.Array:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        if topics.null_count:
            raise WrongRows(NULL_TOPIC)
        rows = pa.RecordBatch.from_arrays(list(values), list(columns)) if columns else None
        distinct = pc.unique(topics).to_pylist()
        if len(distinct) == 1:
            return _partitions(settings, distinct[0], rows, len(topics))
        places = [pc.indices_nonzero(pc.equal(topics, topic)) for topic in distinct]
        chosen = [
            _partitions(settings, topic, None if rows is None else rows.take(own), len(own))
            for topic, own in zip(distinct, places, strict=True)
        ]
        return pa.concat_arrays(chosen).take(pc.sort_indices(pa.concat_arrays(places)))

    # Spark reads annotations, and refuses those that are texts.
    choose.__annotations__ = {}
    return choose


def _partitions(settings: Settings, topic: str, rows: pa.RecordBatch | None, size: int) -> pa.Array:
    """The partition of each row: the one it asks for, else that of its key, else one for all of them."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    names = [] if rows is None else rows.schema.names
    wanted = rows.column(PARTITION) if rows is not None and PARTITION in names else None
    highest = None if wanted is None else pc.max(wanted).as_py()
    with named(topic):
        producer = producer_for(settings)
        count = producer.partitions_for(topic, at_least=0 if highest is None else highest + 1)
    if wanted is not None and highest is not None:
        _check(topic, wanted, count)
        wanted = wanted.cast(pa.int32())
        if wanted.null_count == 0:
            return wanted
    without_key = random.randrange(count)
    if rows is None or "key" not in names or producer.config.partitioner_ignore_keys:
        by_key = pa.array([without_key] * size, pa.int32())
    else:
        by_key = key_partitions(rows.column("key"), count, without_key)
    return by_key if highest is None else pc.coalesce(wanted, by_key)


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
