"""Spark's own Kafka connector, unmodified, reads and writes topics of our broker, batch and streaming."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from compat.clients.face import Record, without_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEGIN_MS = 1_700_000_000_000
RECORDS = [
    Record(b"value %d" % index, b"key %d" % index, (("n", b"%d" % index),), BEGIN_MS + index)
    for index in range(100)
]


def reading(spark: SparkSession, bootstrap: str, topic: str, **options: Any) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    return reader.option("subscribe", topic).options(**options).load()


def values(frame: DataFrame) -> list[bytes]:
    return sorted(bytes(row.value) for row in frame.select("value").collect())


def test_a_batch_reads_records_with_all_they_have(spark, bootstrap, librdkafka, topic):
    librdkafka.produce(topic, [*RECORDS, Record(None)], codec="zstd")
    rows = reading(spark, bootstrap, topic, includeHeaders=True).orderBy("offset").collect()

    assert [row.offset for row in rows] == list(range(101))
    first, last = rows[0], rows[-1]
    assert (bytes(first.key), bytes(first.value), first.topic, first.partition) == (
        b"key 0",
        b"value 0",
        topic,
        0,
    )
    assert [(header.key, bytes(header.value)) for header in first.headers] == [("n", b"0")]
    assert first.timestampType == 0
    assert rows[5].timestamp - first.timestamp == timedelta(milliseconds=5)
    assert (last.key, last.value, last.headers) == (None, None, None)


def test_offsets_and_times_bound_a_batch(spark, bootstrap, librdkafka, topic):
    librdkafka.create_topic(topic, partitions=2)
    librdkafka.produce(topic, RECORDS)
    wanted = {
        "startingOffsets": json.dumps({topic: {"0": 10, "1": -2}}),
        "endingOffsets": json.dumps({topic: {"0": 13, "1": -1}}),
    }
    assert values(reading(spark, bootstrap, topic, **wanted)) == [b"value 10", b"value 11", b"value 12"]

    late = {
        "startingOffsetsByTimestamp": json.dumps({topic: {"0": BEGIN_MS + 97, "1": BEGIN_MS}}),
        "startingOffsetsByTimestampStrategy": "latest",
    }
    assert values(reading(spark, bootstrap, topic, **late)) == [b"value 97", b"value 98", b"value 99"]


def test_a_batch_writes_keys_values_headers_and_partitions(spark, bootstrap, librdkafka, topic):
    librdkafka.create_topic(topic, partitions=2)
    frame = spark.sql(
        """
        SELECT CAST(concat('key ', id) AS BINARY) AS key, CAST(concat('value ', id) AS BINARY) AS value,
               array(named_struct('key', 'n', 'value', CAST(CAST(id AS STRING) AS BINARY))) AS headers,
               0 AS partition
        FROM range(100)
        """
    )
    writer = frame.coalesce(1).write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    writer.option("topic", topic).option("includeHeaders", True).save()

    received = librdkafka.consume(topic, 100)
    assert without_time(received) == [Record(r.value, r.key, r.headers, 0) for r in RECORDS]


def test_the_official_stream_continues_where_it_stopped(spark, bootstrap, librdkafka, topic, tmp_path):
    source, target = f"{topic}-source", f"{topic}-target"
    librdkafka.create_topic(source)
    librdkafka.create_topic(target)

    def run_once() -> None:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        frame = reader.option("subscribe", source).options(
            startingOffsets="earliest", includeHeaders=True, maxOffsetsPerTrigger=40
        )
        writer = frame.load().select("key", "value", "headers").writeStream.format("kafka")
        writer = writer.option("kafka.bootstrap.servers", bootstrap).option("topic", target)
        writer = writer.option("includeHeaders", True).option("checkpointLocation", str(tmp_path))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(200)
        assert query.exception() is None

    for half in (RECORDS[:50], RECORDS[50:]):
        librdkafka.produce(source, half)
        run_once()

    received = librdkafka.consume(target, 100)
    assert without_time(received) == [Record(r.value, r.key, r.headers, 0) for r in RECORDS]
    assert librdkafka.first_and_next_offset(target) == (0, 100)


def test_a_stream_finds_topics_by_pattern_and_starts_by_time(spark, bootstrap, librdkafka, topic, tmp_path):
    for number in (1, 2):
        librdkafka.produce(f"{topic}-{number}", RECORDS)
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    frame = reader.option("subscribePattern", f"{topic}-.*").option("startingTimestamp", BEGIN_MS + 90).load()
    query = frame.writeStream.format("memory").queryName("found").trigger(availableNow=True)
    assert query.option("checkpointLocation", str(tmp_path)).start().awaitTermination(200)

    found = spark.sql("SELECT topic, count(*) AS records, min(timestamp) AS first FROM found GROUP BY topic")
    rows = sorted((row.topic, row.records, row["first"]) for row in found.collect())
    first = datetime.fromtimestamp((BEGIN_MS + 90) / 1000, UTC).astimezone().replace(tzinfo=None)
    assert rows == [(f"{topic}-1", 10, first), (f"{topic}-2", 10, first)]


def test_a_batch_is_bounded_by_one_time_and_finds_topics_by_pattern(spark, bootstrap, librdkafka, topic):
    for number in (1, 2):
        librdkafka.create_topic(f"{topic}-{number}", partitions=2)
        librdkafka.produce(f"{topic}-{number}", RECORDS)
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    times = {
        "startingTimestamp": BEGIN_MS + 95,
        "endingTimestamp": BEGIN_MS + 97,
        "startingOffsetsByTimestampStrategy": "latest",
    }
    frame = reader.option("subscribePattern", f"{topic}-.").options(**times, minPartitions=5).load()
    assert values(frame) == [b"value 95", b"value 95", b"value 96", b"value 96"]


def test_rows_choose_their_topics(spark, bootstrap, librdkafka, topic):
    frame = spark.sql(
        f"SELECT concat('{topic}-', id % 2) AS topic, CAST(id AS STRING) AS value FROM range(20)"
    )
    for number in (0, 1):
        librdkafka.create_topic(f"{topic}-{number}")
    frame.coalesce(1).write.format("kafka").option("kafka.bootstrap.servers", bootstrap).save()
    for number in (0, 1):
        expected = [b"%d" % value for value in range(number, 20, 2)]
        assert [one.record.value for one in librdkafka.consume(f"{topic}-{number}", 10)] == expected


def test_a_stream_starts_by_offsets_and_by_times_of_partitions(spark, bootstrap, librdkafka, topic, tmp_path):
    librdkafka.create_topic(topic, partitions=2)
    librdkafka.produce(topic, RECORDS)
    for name, options in {
        "by_offsets": {"startingOffsets": json.dumps({topic: {"0": 90, "1": -2}})},
        "by_times": {
            "startingOffsetsByTimestamp": json.dumps({topic: {"0": BEGIN_MS + 90, "1": BEGIN_MS}}),
            "startingOffsetsByTimestampStrategy": "latest",
            "kafka.isolation.level": "read_committed",
        },
    }.items():
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        frame = reader.option("subscribe", topic).options(**options).load()
        query = frame.writeStream.format("memory").queryName(name).trigger(availableNow=True)
        query = query.option("checkpointLocation", str(tmp_path / name)).start()
        assert query.awaitTermination(200)
        assert values(spark.table(name)) == [b"value %d" % index for index in range(90, 100)]
