"""Spark's own Kafka connector, unmodified, reads and writes topics of our broker, in batches and in streams.

Needs pyspark, Java, and the jars that bench/peers/setup-spark fetches: the suite `spark` of tools/suites.toml
sees to them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat.clients.face import Record, without_time
from compat.clients.librdkafka import Librdkafka

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SETUP = Path(__file__).resolve().parents[2] / "bench" / "peers" / "setup-spark"
BEGIN_MS = 1_700_000_000_000
RECORDS = [
    Record(b"value %d" % index, b"key %d" % index, (("n", b"%d" % index),), BEGIN_MS + index)
    for index in range(100)
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    jars = subprocess.run([str(SETUP)], capture_output=True, text=True, check=True).stdout.strip()
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def librdkafka(bootstrap: str) -> Librdkafka:
    """Writes what Spark reads, and reads what Spark wrote."""
    return Librdkafka(bootstrap)


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


def test_a_stream_goes_on_where_it_stopped(spark, bootstrap, librdkafka, topic, tmp_path):
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
        assert query.awaitTermination(120)
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
    assert query.option("checkpointLocation", str(tmp_path)).start().awaitTermination(120)

    found = spark.sql("SELECT topic, count(*) AS records, min(timestamp) AS first FROM found GROUP BY topic")
    rows = sorted((row.topic, row.records, row["first"]) for row in found.collect())
    first = datetime.fromtimestamp((BEGIN_MS + 90) / 1000, UTC).astimezone().replace(tzinfo=None)
    assert rows == [(f"{topic}-1", 10, first), (f"{topic}-2", 10, first)]
