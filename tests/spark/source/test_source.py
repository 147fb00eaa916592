"""Topics read by format("odradek"): rows and schema of Spark's own Kafka source, batch and streaming."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from odradek.client.admin.admin import Admin
from odradek.spark.source.batch import new_reader
from odradek.testing import Cluster
from spark.reading import both, read, rows, stream, streamed

SEGMENTS = Path(__file__).parents[2] / "data" / "segments"
BEGIN_MS = 1_700_000_000_000
RECORDS = [
    Record(
        None if index % 11 == 0 else b"value %d" % index,
        None if index % 7 == 0 else b"key %d" % index,
        (("n", b"%d" % index), ("empty", None)) if index % 3 else (),
        BEGIN_MS + index,
    )
    for index in range(300)
]


def test_a_batch_has_the_rows_and_the_schema_of_the_official_source(spark, bootstrap, librdkafka, topic):
    librdkafka.create_topic(topic, partitions=3)  # of which two stay empty
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        librdkafka.produce(topic, RECORDS, codec=codec)
    assert len(both(spark, bootstrap, topic, includeHeaders=True, minPartitions=7)) == 1500
    librdkafka.delete_records(topic, 700)
    found = both(spark, bootstrap, topic, maxRecordsPerPartition=333)
    assert [row.offset for row in found] == list(range(700, 1500))


def test_offsets_and_times_bound_a_batch_as_by_the_official_source(spark, bootstrap, librdkafka, topic):
    librdkafka.create_topic(topic, partitions=2)
    librdkafka.produce(topic, RECORDS)
    for options, expected in (
        (
            {
                "startingOffsets": json.dumps({topic: {"0": 10, "1": -2}}),
                "endingOffsets": json.dumps({topic: {"0": 13, "1": -1}}),
            },
            range(10, 13),
        ),
        (
            {
                "startingTimestamp": BEGIN_MS + 290,
                "startingOffsetsByTimestampStrategy": "latest",
                "endingTimestamp": BEGIN_MS + 295,
            },
            range(290, 295),
        ),
        (
            {
                "assign": json.dumps({topic: [0]}),
                "startingOffsetsByTimestamp": json.dumps({topic: {"0": BEGIN_MS + 50}}),
                "endingOffsetsByTimestamp": json.dumps({topic: {"0": BEGIN_MS + 52}}),
            },
            range(50, 52),
        ),
    ):
        subscribed = None if "assign" in options else topic
        assert [row.offset for row in both(spark, bootstrap, subscribed, **options)] == list(expected)


def test_a_pattern_finds_topics_and_sql_can_use_the_format(spark, bootstrap, librdkafka, topic):
    for number in (1, 2):
        librdkafka.produce(f"{topic}-{number}", RECORDS[:10])
    assert len(both(spark, bootstrap, subscribePattern=f"{topic}-.*")) == 20

    name = "by_sql"
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW {name} USING odradek "
        f"OPTIONS (kafka.bootstrap.servers '{bootstrap}', subscribe '{topic}-1')"
    )
    assert spark.sql(f"SELECT count(*) AS n FROM {name}").first().n == 10


def test_a_schema_chooses_columns(spark, bootstrap, librdkafka, topic):
    librdkafka.produce(topic, RECORDS)
    reader = spark.read.format("odradek").option("kafka.bootstrap.servers", bootstrap)
    reader = reader.option("subscribe", topic)
    found = reader.schema("offset bigint, value binary").load().orderBy("offset").collect()
    assert [tuple(row) for row in found] == [(at, record.value) for at, record in enumerate(RECORDS)]
    for schema, problem in (
        ("value string", "the column value is of type binary, not string: cast it after reading"),
        ("payload binary", "there is no column payload"),
    ):
        with pytest.raises(Exception, match=problem):
            reader.schema(schema).load().count()


def test_columns_that_were_not_asked_for_are_not_transferred(spark, bootstrap, librdkafka, topic):
    librdkafka.produce(topic, [Record(b"v" * 2000, b"k" * 500)] * 1000)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}

    def sent(columns: str) -> int:
        """The Arrow bytes that tasks send to Spark."""
        reader = new_reader(options, StructType.fromDDL(columns))
        return sum(batch.nbytes for partition in reader.partitions() for batch in reader.read(partition))

    assert sent("offset bigint") < 20_000
    assert 500_000 < sent("key binary") < 600_000
    assert 2_500_000 < sent("key binary, value binary") < 2_600_000


def test_filters_choose_offsets_before_anything_is_read(spark, bootstrap, librdkafka, topic):
    librdkafka.create_topic(topic, partitions=3)
    librdkafka.produce(topic, RECORDS)
    frame = read(spark, "odradek", bootstrap, topic)
    conditions = (
        f"topic = '{topic}' AND partition IN (0, 2) AND offset >= 100 AND offset < 200 AND timestamp >= "
        f"timestamp_millis({BEGIN_MS + 150}) AND timestamp <= timestamp_millis({BEGIN_MS + 160})"
    )
    expected = rows(read(spark, "kafka", bootstrap, topic).where(conditions))
    assert [row.offset for row in expected] == list(range(150, 161))
    assert rows(frame.where(conditions)) == expected  # not pushed down
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushed = frame.where(conditions)
        assert rows(pushed) == expected
        plan = pushed._jdf.queryExecution().executedPlan().toString()
        assert "Filter" not in plan.replace("PushedFilters", "").replace("RuntimeFilters", "")
        assert pushed.rdd.getNumPartitions() == 1
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_stream_continues_where_it_stopped_and_shows_its_lag(spark, bootstrap, librdkafka, topic, tmp_path):
    librdkafka.create_topic(topic, partitions=2)
    options = {
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 60,
        "includeHeaders": True,
        "kafka.group.id": topic,
    }
    for part in (RECORDS[:100], RECORDS[100:]):
        librdkafka.produce(topic, part)
        query = stream(spark, bootstrap, topic, tmp_path, **options)
        assert max(progress.numInputRows for progress in query.recentProgress) == 60
    expected = rows(read(spark, "kafka", bootstrap, topic, includeHeaders=True))
    assert streamed(spark, tmp_path) == expected
    assert len(expected) == 300
    with Admin(bootstrap_servers=bootstrap) as admin:
        committed = admin.list_group_offsets(topic)
    assert {one.partition: found.offset for one, found in committed.items()} == {0: 300, 1: 0}


def test_a_limit_makes_the_micro_batches_of_the_official_source(
    spark, bootstrap, librdkafka, topic, tmp_path
):
    librdkafka.create_topic(topic, partitions=3)
    for partition, count in enumerate((41, 1, 7)):
        write_into(bootstrap, topic, partition, count)
    found = {}
    for source in ("odradek", "kafka"):
        reader = spark.readStream.format(source).option("kafka.bootstrap.servers", bootstrap)
        frame = reader.options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=10).load()
        query = frame.writeStream.format("noop").trigger(availableNow=True)
        query = query.option("checkpointLocation", str(tmp_path / source)).start()
        assert query.awaitTermination(200)
        found[source] = [json.loads(one.sources[0].endOffset) for one in query.recentProgress]
    assert found["odradek"] == found["kafka"]
    assert found["odradek"][0] == {topic: {"0": 8, "1": 1, "2": 1}}
    assert found["odradek"][-1] == {topic: {"0": 41, "1": 1, "2": 7}}


def test_a_stream_reads_partitions_that_are_new_from_their_first_record(
    spark, bootstrap, librdkafka, topic, tmp_path
):
    librdkafka.create_topic(topic)
    stream(spark, bootstrap, topic, tmp_path, startingOffsets="latest")
    librdkafka.produce(topic, RECORDS[:20])
    librdkafka.add_partitions(topic, 3)
    write_into(bootstrap, topic, partition=2, count=15)
    stream(spark, bootstrap, topic, tmp_path, startingOffsets="latest", maxOffsetsPerTrigger=10)
    found = streamed(spark, tmp_path)
    assert [(row.partition, row.offset) for row in found] == [
        *((0, offset) for offset in range(20)),
        *((2, offset) for offset in range(15)),
    ]


def write_into(bootstrap: str, topic: str, partition: int, count: int) -> None:
    from odradek.client.producer.producer import Producer

    with Producer(bootstrap_servers=bootstrap) as producer:
        for index in range(count):
            producer.send(topic, b"%d" % index, partition=partition).result()


def test_segments_of_apache_kafka_served_by_us_have_the_official_rows(spark, tmp_path):
    """Aborted transactions and compacted gaps, which our own broker would not write yet."""
    names = ("transactions", "compacted", "log-append-time")
    with Cluster(process=True) as cluster:
        librdkafka = Librdkafka(cluster.bootstrap)
        for name in names:
            librdkafka.create_topic(name)
        cluster.stop()
        for name in names:
            put_segments(cluster.data_dir, name)
        cluster.restart()
        for level in ("read_committed", "read_uncommitted"):
            options = {"includeHeaders": True, "kafka.isolation.level": level}
            found = both(spark, cluster.bootstrap, ",".join(names), **options)
            expected = {"read_committed": 9, "read_uncommitted": 12}
            assert sum(row.topic == "transactions" for row in found) == expected[level]
            assert sum(row.topic == "compacted" for row in found) == 16
            stream(
                spark,
                cluster.bootstrap,
                ",".join(names),
                tmp_path / level,
                startingOffsets="earliest",
                maxOffsetsPerTrigger=11,
                **options,
            )
            assert streamed(spark, tmp_path / level) == found


def put_segments(data_dir: Path, name: str) -> None:
    """Files that Apache Kafka wrote, in place of those of an empty partition."""
    (directory,) = data_dir.rglob(f"{name}-0")
    for file in directory.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    for file in (SEGMENTS / name).iterdir():
        if file.name not in ("partition.metadata", "dump.txt", "expected.json"):
            shutil.copy(file, directory)
