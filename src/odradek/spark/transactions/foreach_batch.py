"""Exactly once by `foreachBatch`: rows are shuffled to the tasks that own their partitions, which write them.

Each micro-batch is one transaction, over all DataFrames, topics and tasks that are written in it.
"""

from __future__ import annotations

import pickle
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odradek.common.errors import ConfigError
from odradek.common.ids import TopicPartition
from odradek.spark.sink.options import NO_NAME, SinkOptions, exactly_once_options
from odradek.spark.sink.rows import row_layout
from odradek.spark.transactions import source_offsets
from odradek.spark.transactions.driver import QueryTransactions
from odradek.spark.transactions.errors import RepeatedTask
from odradek.spark.transactions.marker import MicroBatch
from odradek.spark.transactions.tasks import (
    OWNER,
    PARTITION,
    Joined,
    TaskReport,
    choosing_partitions,
    writing,
)

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import DataFrame, SparkSession

QUERY_ID = "sql.streaming.queryId"
_STAGES_KNOWN_S = 30.0
_PAUSE_S = 0.002

Write = Callable[..., int]
Process = Callable[["DataFrame", Write], object]


class ExactlyOnce:
    """What `odradek.spark.exactly_once` returns, for `foreachBatch`. Lives in the driver's process."""

    def __init__(self, options: Mapping[str, str], process: Process | None, name: str | None) -> None:
        self._given = dict(options)
        self._options = exactly_once_options(options)
        self._process = process or _write_all
        self._name = name
        self._transactions: QueryTransactions | None = None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Write one micro-batch, unless it was committed before."""
        spark = batch.sparkSession
        query_id = spark.sparkContext.getLocalProperty(QUERY_ID)
        if query_id is None:
            raise ConfigError("exactly_once is for foreachBatch of a streaming query; see write_exactly_once")
        execution = _execution(spark, query_id)
        name = self._name or execution.name()
        if not name:
            raise ConfigError(NO_NAME)
        entry = source_offsets.log_entry(_offset_log_reader(spark, execution, batch_id), batch_id)
        micro_batch = MicroBatch(query_id, batch_id, source_offsets.checksum(entry))
        micro_batch = micro_batch.of_run(str(execution.runId()))
        self._in_transaction(name, batch, micro_batch, source_offsets.end_offsets(entry))

    def _in_transaction(
        self,
        name: str,
        batch: DataFrame,
        micro_batch: MicroBatch | None,
        source_ends: Mapping[TopicPartition, int],
    ) -> None:
        if self._transactions is None:
            self._transactions = QueryTransactions(name, dict(self._options.producer))
        transactions = self._transactions
        try:
            producer = transactions.begin(micro_batch)
            if producer is None:
                return
            written = _Written(batch.sparkSession, self._given, name, producer)
            self._process(batch, written.write)
            transactions.commit(micro_batch, written.sequences, source_ends)
        except BaseException as error:
            # What is known of the transaction is in doubt: the next micro-batch begins from the marker.
            self._transactions = None
            with transactions:
                cause = transactions.abort()
            if cause is not None and cause is not error:
                raise cause from error
            raise

    def write_once(self, frame: DataFrame) -> None:
        """Write a DataFrame that is no stream in one transaction."""
        name = self._name or f"odradek-write-{uuid.uuid4()}"
        self._in_transaction(name, frame, None, {})
        if self._transactions is not None:
            self._transactions.close()
            self._transactions = None


def _write_all(batch: DataFrame, write: Write) -> object:
    return write(batch)


class _Written:
    """What is written in one transaction so far."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str], name: str, producer: Any) -> None:
        self._spark = spark
        self._given = options
        self._name = name
        self._producer = producer
        self._one_at_a_time = threading.Lock()
        self.sequences: dict[TopicPartition, int] = {}

    def write(self, frame: DataFrame, **options: str) -> int:
        """Write a DataFrame in the transaction; how many rows that were. Options are those of the sink.

        From several threads one after the other: a write continues the sequences of the one before.
        """
        checked = exactly_once_options({**self._given, **options})
        with self._one_at_a_time:
            reports = _run(frame, checked, self._name, self._producer, self.sequences, self._spark)
            for report in reports:
                self.sequences |= report.sequences
        return sum(report.rows for report in reports)


def _run(
    frame: DataFrame,
    options: SinkOptions,
    name: str,
    producer: Any,
    sequences: Mapping[TopicPartition, int],
    spark: SparkSession,
) -> list[TaskReport]:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415
    from pyspark.sql.types import IntegerType  # noqa: PLC0415

    layout = row_layout(frame.schema, options)
    places = dict(layout.columns)
    if layout.topic_place is not None:
        places["topic"] = layout.topic_place
    columns = [F.col(f"`{frame.columns[place]}`").alias(column) for column, place in places.items()]
    if layout.topic is not None:
        columns.append(F.lit(layout.topic).alias("topic"))
    records = frame.select(*columns)
    chosen_by = [column for column in (PARTITION, "key") if column in records.columns]
    # Only these columns go to Python here. Not deterministic, so that Spark does not choose twice.
    choose = F.arrow_udf(choosing_partitions(options, name, chosen_by), IntegerType()).asNondeterministic()
    placed = records.withColumn(PARTITION, choose("topic", *chosen_by))
    tasks = spark.sparkContext.defaultParallelism
    number = F.crc32(F.col("topic").cast("binary")) + F.col(PARTITION)
    owned = placed.withColumn(OWNER, F.pmod(number, F.lit(tasks)).cast("int")).repartitionById(tasks, OWNER)
    joined = Joined(options, name, producer, dict(sequences))
    layout = row_layout(owned.schema, replace(options, topic=None))
    written = owned.mapInArrow(writing(joined, layout), "report binary")
    reports: list[TaskReport] = [pickle.loads(row.report) for row in written.collect()]
    _check(reports, sequences, was_repeated=_was_repeated(spark, reports))
    return reports


def _was_repeated(spark: SparkSession, reports: list[TaskReport]) -> bool:
    """Whether the stage that writes was run again, or nobody knows."""
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + _STAGES_KNOWN_S
    return not all(_ran_once(tracker, stage, deadline) for stage in {one.stage for one in reports})


def _ran_once(tracker: StatusTracker, stage: int, deadline: float) -> bool:
    """Whether all tasks of the first attempt have ended well: a stage that is run again has one that did not.

    Spark's memory of stages is filled by events, some time later, and events may get lost.
    """
    while time.monotonic() < deadline:
        known = tracker.getStageInfo(stage)
        if known is not None and known.currentAttemptId > 0:
            return False
        if known is not None and known.numCompletedTasks == known.numTasks:
            return True
        time.sleep(_PAUSE_S)
    return False


def _check(reports: list[TaskReport], before: Mapping[TopicPartition, int], *, was_repeated: bool) -> None:
    """Refuse a result in which Spark may have run a task twice."""
    tasks = [report.task for report in reports]
    grown = [
        partition
        for report in reports
        for partition, sequence in report.sequences.items()
        if sequence != before.get(partition, 0)
    ]
    if was_repeated or len(set(tasks)) < len(tasks) or len(set(grown)) < len(grown):
        raise RepeatedTask(
            "Spark repeated a stage that writes, so that the micro-batch must be: start the query again"
        )


def _execution(spark: SparkSession, query_id: str) -> Any:
    """The query that calls us, in the JVM. The session of a batch is a copy whose `streams` are empty."""
    for execution in spark._jsparkSession.sharedState().activeStreamingQueries().values():
        if str(execution.id()) == query_id:
            return execution
    raise ConfigError(f"no active query has the id {query_id}")


def _offset_log_reader(spark: SparkSession, execution: Any, batch_id: int) -> Callable[[], str]:
    """Reads Spark's offset log through the JVM, which knows the file system of the checkpoint."""

    def read() -> str:
        jvm: Any = spark._jvm
        root = execution.resolvedCheckpointRoot()
        path = jvm.org.apache.hadoop.fs.Path(f"{root}/offsets/{batch_id}")
        stream = path.getFileSystem(spark._jsc.hadoopConfiguration()).open(path)
        try:
            return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    return read
