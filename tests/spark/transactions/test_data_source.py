"""Exactly once by `format("odradek")`: what Spark repeats is written once."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from odradek.client.admin.admin import Admin
from odradek.client.errors import BrokerError
from odradek.client.producer.transactions.driver import TransactionDriver
from odradek.common.error_codes import ErrorCode
from odradek.spark.errors import sentence_of
from odradek.spark.sink.options import sink_options
from odradek.spark.sink.rows import row_layout
from odradek.spark.transactions.by_commit import ExactlyOnceByCommit, HandedOver
from odradek.spark.transactions.errors import TransactionFailed
from spark.transactions.test_foreach_batch import committed_values, forget_commit

RECORDS = [Record(b"%d" % index, b"key %d" % (index % 7)) for index in range(100)]


def run(
    spark: Any,
    bootstrap: str,
    topic: str,
    checkpoint: Path,
    frame: Any = None,
    *,
    sink: str = "odradek",
    **options: str,
) -> Any:
    """Write what is there, into the topic unless the frame's rows choose theirs; the error if it failed."""
    chooses_topics = frame is not None and "topic" in frame.columns
    if frame is None:
        reader = spark.readStream.format("odradek").option("kafka.bootstrap.servers", bootstrap)
        frame = reader.option("subscribe", f"{topic}-source").option("startingOffsets", "earliest").load()
    writer = frame.writeStream.format(sink).option("kafka.bootstrap.servers", bootstrap)
    if not chooses_topics:
        writer = writer.option("topic", topic)
    writer = writer.option("checkpointLocation", str(checkpoint)).options(**options)
    query = writer.queryName(topic).trigger(availableNow=True).start()
    try:
        query.awaitTermination(120)
    except Exception as error:  # Spark raises the query's
        return error
    return None


def test_what_spark_repeats_by_the_data_source_is_written_once(spark, brokers, topic, tmp_path):
    written_once(spark, brokers, topic, tmp_path)


@pytest.mark.long
def test_the_same_by_the_data_source_with_apache_kafkas_v1(spark, kafka_v1, topic, tmp_path):
    written_once(spark, kafka_v1, topic, tmp_path)


def written_once(spark: Any, bootstrap: str, topic: str, tmp_path: Path) -> None:
    librdkafka = Librdkafka(bootstrap)
    librdkafka.create_topic(f"{topic}-source", partitions=2)
    librdkafka.create_topic(topic, partitions=3)
    librdkafka.produce(f"{topic}-source", RECORDS[:60])
    assert run(spark, bootstrap, topic, tmp_path) is None
    forget_commit(tmp_path, 0)
    librdkafka.produce(f"{topic}-source", RECORDS[60:])
    assert run(spark, bootstrap, topic, tmp_path) is None

    found = committed_values(spark, bootstrap, topic)
    assert sorted(map(int, found)) == list(range(100))
    of_one_key = [int(value) for value in found if int(value) % 7 == 3]
    assert of_one_key == sorted(of_one_key)
    with Admin(bootstrap_servers=bootstrap) as admin:
        offsets = admin.list_group_offsets(topic)
    assert sum(row.offset for row in offsets.values()) == 100
    assert all('"batch":1' in row.metadata for row in offsets.values())


def test_at_least_once_is_an_option_and_does_write_twice(spark, bootstrap, librdkafka, topic, tmp_path):
    librdkafka.create_topic(f"{topic}-source")
    librdkafka.create_topic(topic)
    librdkafka.produce(f"{topic}-source", RECORDS)
    assert run(spark, bootstrap, topic, tmp_path, delivery="at-least-once") is None
    forget_commit(tmp_path, 0)
    assert run(spark, bootstrap, topic, tmp_path, delivery="at-least-once") is None
    assert len(committed_values(spark, bootstrap, topic)) == 200


def test_a_query_fences_an_earlier_driver_of_its_name(spark, bootstrap, librdkafka, topic, tmp_path):
    librdkafka.create_topic(topic)
    with TransactionDriver(bootstrap_servers=bootstrap, transactional_id=topic) as earlier:
        producer = earlier.init_producer_id()
        frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
        frame = frame.selectExpr("CAST(value AS STRING) AS value")
        assert run(spark, bootstrap, topic, tmp_path, frame) is None
        with pytest.raises(BrokerError) as fenced:
            earlier.init_producer_id(producer)
    assert fenced.value.error_code is ErrorCode.PRODUCER_FENCED
    assert len(committed_values(spark, bootstrap, topic)) == 3


def test_a_failure_after_rows_by_the_data_source_is_reported_as_it_is(spark, brokers, topic, tmp_path):
    librdkafka = Librdkafka(brokers)
    librdkafka.create_topic(topic, partitions=2)
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).load()
    wrong = rate.selectExpr("CAST(value AS STRING) AS value", "IF(value < 3, 0, 7) AS partition")
    error = run(spark, brokers, topic, tmp_path, wrong)
    assert f"topic {topic} has 2 partitions, and no 7" in sentence_of(error)
    right = rate.selectExpr("CAST(value AS STRING) AS value", "0 AS partition")
    assert run(spark, brokers, topic, tmp_path, right) is None
    found = sorted(map(int, committed_values(spark, brokers, topic)))
    assert found == list(range(len(found)))
    assert found


def test_the_data_source_wants_a_name(spark, bootstrap, topic, tmp_path):
    frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
    frame = frame.selectExpr("CAST(value AS STRING) AS value")
    writer = frame.writeStream.format("odradek").option("kafka.bootstrap.servers", bootstrap)
    writer = writer.option("topic", topic).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    with pytest.raises(Exception, match="exactly once needs a name") as refused:
        query.awaitTermination(60)
    assert sentence_of(refused.value).startswith("exactly once needs a name for the query")


def test_rows_without_the_id_of_their_query_are_refused_before_anything_is_written(bootstrap, topic):
    """Without a marker a repetition would write them twice."""
    options = sink_options({"kafka.bootstrap.servers": bootstrap, "topic": topic, "queryName": topic})
    layout = row_layout(StructType([StructField("value", StringType())]), options)
    nameless = HandedOver(rows=1, tables=((topic, b"packed"),), query_id=None, run_id=None)
    with pytest.raises(TransactionFailed, match="micro-batch 3 cannot be written exactly once"):
        ExactlyOnceByCommit(options, layout).commit([nameless], batch_id=3)
    with Admin(bootstrap_servers=bootstrap) as admin:
        assert topic not in {one.transactional_id for one in admin.list_transactions()}


def test_spark_calls_the_commit_after_all_tasks_and_before_its_own(spark, topic, tmp_path):
    """Undocumented, and what exactly once by the data source stands on."""
    log, checkpoint = tmp_path / "calls", tmp_path / "checkpoint"
    log.mkdir()
    spark.dataSource.register(recording_source(str(log), str(checkpoint / "commits")))
    frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4)
    frame = frame.option("numPartitions", 2).load()
    writer = frame.writeStream.format("recording").option("checkpointLocation", str(checkpoint))
    query = writer.queryName(topic).trigger(availableNow=True).start()
    query.awaitTermination(60)

    calls = sorted(log.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    kinds = [path.read_text() for path in calls]
    assert kinds == [f"task {topic}"] * 2 + [f"commit {topic} of 2 tasks, batch 0, no commit of Spark's"]


def test_spark_calls_no_commit_where_a_task_has_failed_and_one_for_no_rows(spark, topic, tmp_path):
    """Undocumented, too: else a part of a micro-batch could be committed."""
    from pyspark.errors import StreamingQueryException

    log, checkpoint = tmp_path / "calls", tmp_path / "checkpoint"
    log.mkdir()
    spark.dataSource.register(recording_source(str(log), str(checkpoint / "commits")))

    def kinds_of_calls(condition: str) -> list[str]:
        for path in log.iterdir():
            path.unlink()
        frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4)
        frame = frame.option("numPartitions", 2).load().where(condition)
        writer = frame.writeStream.format("recording").option("checkpointLocation", str(checkpoint))
        query = writer.queryName(topic).trigger(availableNow=True).start()
        with suppress(StreamingQueryException):
            query.awaitTermination(60)
        return sorted({path.read_text().partition(" ")[0] for path in log.iterdir()} - {"task"})

    assert kinds_of_calls("assert_true(value < 3) IS NULL") == ["abort"]
    assert kinds_of_calls("value < 0") == ["commit"]


def recording_source(log: str, commits: str) -> type:
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceStreamArrowWriter,
        WriterCommitMessage,
    )

    def note(text: str) -> None:
        import uuid

        (Path(log) / str(uuid.uuid4())).write_text(text)

    class Writer(DataSourceStreamArrowWriter):
        def __init__(self, name: str) -> None:
            self.name = name

        def write(self, iterator: Any) -> WriterCommitMessage:
            for _ in iterator:
                pass
            note(f"task {self.name}")
            return WriterCommitMessage()

        def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
            is_early = not list(Path(commits).glob("[0-9]*"))
            when = "no commit of Spark's" if is_early else "after Spark's"
            note(f"commit {self.name} of {len(messages)} tasks, batch {batchId}, {when}")

        def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
            note(f"abort {self.name}, batch {batchId}")

    class Recording(DataSource):
        @classmethod
        def name(cls) -> str:
            return "recording"

        def streamWriter(self, schema: Any, overwrite: bool) -> Writer:  # noqa: N802
            return Writer(self.options["queryName"])

    return Recording
