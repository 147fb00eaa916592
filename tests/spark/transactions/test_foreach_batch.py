"""Exactly once by `foreachBatch`: what Spark repeats is written once."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from odradek.client.admin.admin import Admin
from odradek.common.ids import TopicPartition
from odradek.spark import exactly_once, write_exactly_once
from odradek.spark.errors import sentence_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def committed_values(spark: SparkSession, bootstrap: str, topic: str) -> list[bytes]:
    """What readers of committed data find, in the order of partitions and offsets."""
    reader = spark.read.format("odradek").option("kafka.bootstrap.servers", bootstrap)
    frame = reader.option("kafka.isolation.level", "read_committed").option("subscribe", topic).load()
    return [bytes(row.value) for row in sorted(frame.collect(), key=lambda row: (row.partition, row.offset))]


def run(
    spark: SparkSession,
    bootstrap: str,
    source: str,
    name: str,
    checkpoint: Path,
    function: Any,
    **options: str,
) -> Any:
    """Process what is there; the error if the query failed."""
    reader = spark.readStream.format("odradek").option("kafka.bootstrap.servers", bootstrap)
    frame = reader.option("subscribe", source).option("startingOffsets", "earliest").options(**options).load()
    writer = frame.select("key", "value").writeStream.queryName(name).foreachBatch(function)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        query.awaitTermination(120)
    except Exception as error:  # Spark raises the query's
        return error
    return None


def sink(bootstrap: str, **options: str) -> Mapping[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, **options}


def forget_commit(checkpoint: Path, batch_id: int) -> None:
    """As if the driver had died before Spark's own commit of the micro-batch."""
    (checkpoint / "commits" / str(batch_id)).unlink()
    (checkpoint / "commits" / f".{batch_id}.crc").unlink(missing_ok=True)


RECORDS = [Record(b"%d" % index, b"key %d" % (index % 7)) for index in range(100)]


def through_exactly_once(spark: Any, bootstrap: str, topic: str, checkpoint: Path) -> None:
    librdkafka, source = Librdkafka(bootstrap), f"{topic}-source"
    librdkafka.create_topic(source, partitions=2)
    librdkafka.create_topic(topic, partitions=3)

    def once() -> None:
        function = exactly_once(sink(bootstrap, topic=topic))
        assert run(spark, bootstrap, source, topic, checkpoint, function) is None

    librdkafka.produce(source, RECORDS[:60])
    once()
    forget_commit(checkpoint, 0)
    librdkafka.produce(source, RECORDS[60:])
    once()  # repeats micro-batch 0, then goes on

    found = committed_values(spark, bootstrap, topic)
    assert sorted(map(int, found)) == list(range(100))
    of_one_key = [int(value) for value in found if int(value) % 7 == 3]
    assert of_one_key == sorted(of_one_key)


def test_a_repeated_micro_batch_is_written_once(spark, brokers, topic, tmp_path):
    through_exactly_once(spark, brokers, topic, tmp_path)
    with Admin(bootstrap_servers=brokers) as admin:
        offsets = admin.list_group_offsets(topic)
    source = {partition.partition: row for partition, row in offsets.items()}
    assert {partition.topic for partition in offsets} == {f"{topic}-source"}
    assert sum(row.offset for row in source.values()) == 100
    assert '"batch":1' in source[0].metadata


def test_the_same_on_apache_kafka(spark, kafka, topic, tmp_path):
    through_exactly_once(spark, kafka[0], topic, tmp_path)


@pytest.mark.long
def test_the_same_on_apache_kafka_with_transactions_v1(spark, kafka_v1, topic, tmp_path):
    through_exactly_once(spark, kafka_v1, topic, tmp_path)


def test_a_failure_between_two_sinks_leaves_nothing_of_either(spark, bootstrap, librdkafka, topic, tmp_path):
    source, first, second = f"{topic}-source", f"{topic}-first", f"{topic}-second"
    for name in (source, first, second):
        librdkafka.create_topic(name, partitions=2)
    librdkafka.produce(source, RECORDS)
    fails = [True]

    def process(batch: DataFrame, write: Any) -> None:
        assert write(batch, topic=first) == 100
        if fails.pop():
            raise RuntimeError("between the sinks")
        assert write(batch.where("CAST(CAST(value AS STRING) AS INT) < 10"), topic=second) == 10
        assert write(batch.where("CAST(CAST(value AS STRING) AS INT) >= 90"), topic=second) == 10

    function = exactly_once(sink(bootstrap), process)
    error = run(spark, bootstrap, source, topic, tmp_path, function)
    assert "between the sinks" in str(error)
    assert committed_values(spark, bootstrap, first) == []
    fails[:] = [False]
    assert run(spark, bootstrap, source, topic, tmp_path, function) is None
    assert sorted(map(int, committed_values(spark, bootstrap, first))) == list(range(100))
    found = sorted(map(int, committed_values(spark, bootstrap, second)))
    assert found == [*range(10), *range(90, 100)]


def test_a_failure_after_rows_is_reported_as_it_is(spark, brokers, topic, tmp_path):
    """It is no fencing: what is open is aborted, and the query starts again once the rows fit."""
    librdkafka, source = Librdkafka(brokers), f"{topic}-source"
    for name in (source, topic):
        librdkafka.create_topic(name, partitions=2)
    librdkafka.produce(source, RECORDS)

    def process(batch: DataFrame, write: Any) -> None:
        write(batch)
        write(batch.selectExpr("value", "7 AS partition"))

    error = run(spark, brokers, source, topic, tmp_path, exactly_once(sink(brokers, topic=topic), process))
    assert sentence_of(error).startswith(f"cannot write into topic '{topic}': topic {topic} has 2 partitions")
    assert "fenced" not in str(error)
    assert run(spark, brokers, source, topic, tmp_path, exactly_once(sink(brokers, topic=topic))) is None
    assert sorted(map(int, committed_values(spark, brokers, topic))) == list(range(100))


def test_writes_of_several_threads_into_one_topic_lose_nothing(spark, bootstrap, librdkafka, topic, tmp_path):
    source = f"{topic}-source"
    librdkafka.create_topic(source)
    librdkafka.create_topic(topic)
    librdkafka.produce(source, RECORDS)

    def process(batch: DataFrame, write: Any) -> None:
        with ThreadPoolExecutor(2) as threads:
            parts = [batch.where(f"CAST(CAST(value AS STRING) AS INT) % 2 = {rest}") for rest in range(2)]
            assert list(threads.map(write, parts)) == [50, 50]

    function = exactly_once(sink(bootstrap, topic=topic), process)
    assert run(spark, bootstrap, source, topic, tmp_path, function) is None
    assert sorted(map(int, committed_values(spark, bootstrap, topic))) == list(range(100))


def test_partitions_that_come_while_a_query_runs_are_read_and_written(
    spark, bootstrap, librdkafka, topic, tmp_path
):
    source = f"{topic}-source"
    for name in (source, topic):
        librdkafka.create_topic(name)
    librdkafka.produce(source, RECORDS[:50])

    def process(batch: DataFrame, write: Any) -> None:
        number = "CAST(CAST(value AS STRING) AS INT)"
        write(batch.selectExpr("value", f"IF({number} < 50, 0, 1) AS partition"))

    function = exactly_once(sink(bootstrap, topic=topic), process)
    assert run(spark, bootstrap, source, topic, tmp_path, function) is None
    for name in (source, topic):
        librdkafka.add_partitions(name, 2)
    librdkafka.produce(source, RECORDS[50:])
    assert run(spark, bootstrap, source, topic, tmp_path, function) is None
    found = librdkafka.partition_count(topic), committed_values(spark, bootstrap, topic)
    assert found == (2, [b"%d" % number for number in range(50)] + found[1][50:])
    assert sorted(map(int, found[1])) == list(range(100))


def test_rows_choose_topics_and_an_empty_micro_batch_is_marked(spark, bootstrap, librdkafka, topic, tmp_path):
    source, targets = f"{topic}-source", [f"{topic}-{number}" for number in range(2)]
    for name in (source, *targets):
        librdkafka.create_topic(name, partitions=2)
    librdkafka.produce(source, RECORDS)

    def by_parity(batch: DataFrame, write: Any) -> None:
        number = "CAST(CAST(value AS STRING) AS INT)"
        write(
            batch.where(f"{number} >= 50").selectExpr(
                f"concat('{topic}-', {number} % 2) AS topic", "value", "key"
            )
        )

    checkpoint = tmp_path / "checkpoint"
    function = exactly_once(sink(bootstrap), by_parity)
    assert run(spark, bootstrap, source, topic, checkpoint, function, maxOffsetsPerTrigger="50") is None
    for number, name in enumerate(targets):
        found = sorted(map(int, committed_values(spark, bootstrap, name)))
        assert found == list(range(50 + number, 100, 2))
    with Admin(bootstrap_servers=bootstrap) as admin:
        marker = admin.list_group_offsets(topic)[TopicPartition(source, 0)]
    assert '"batch":1' in marker.metadata


def test_a_name_belongs_to_one_checkpoint(spark, bootstrap, librdkafka, topic, tmp_path):
    source, target = f"{topic}-source", f"{topic}-target"
    for name in (source, target):
        librdkafka.create_topic(name)
    librdkafka.produce(source, RECORDS)
    function = exactly_once(sink(bootstrap, topic=target))
    assert run(spark, bootstrap, source, topic, tmp_path / "one", function) is None
    error = run(
        spark, bootstrap, source, topic, tmp_path / "two", exactly_once(sink(bootstrap, topic=target))
    )
    assert sentence_of(error).startswith(f"the name '{topic}' belongs to a query with another checkpoint")
    assert len(committed_values(spark, bootstrap, target)) == 100


def test_a_query_without_a_name_is_refused(spark, bootstrap, librdkafka, topic, tmp_path):
    librdkafka.create_topic(topic)
    librdkafka.produce(topic, RECORDS)
    reader = spark.readStream.format("odradek").option("kafka.bootstrap.servers", bootstrap)
    frame = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    writer = frame.writeStream.foreachBatch(exactly_once(sink(bootstrap, topic=topic)))
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    with pytest.raises(Exception, match="exactly once needs a name for the query"):
        query.awaitTermination(60)


def test_a_batch_is_one_transaction(spark, bootstrap, librdkafka, topic):
    librdkafka.create_topic(topic, partitions=3)
    frame = spark.range(0, 1000, 1, 4).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
    write_exactly_once(frame, sink(bootstrap, topic=topic))
    assert sorted(map(int, committed_values(spark, bootstrap, topic))) == list(range(1000))
    with pytest.raises(Exception, match="partitions") as wrong:
        write_exactly_once(
            spark.sql("SELECT 'a' AS value, CAST(id AS INT) AS partition FROM range(9)"),
            sink(bootstrap, topic=topic),
        )
    assert f"topic {topic} has 3 partitions, and no " in sentence_of(wrong.value)
    assert len(committed_values(spark, bootstrap, topic)) == 1000
