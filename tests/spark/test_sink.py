"""DataFrames written into topics by format("odradek"), batch and streaming, as librdkafka reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from compat.clients.face import Record, without_time
from compat.clients.librdkafka import Librdkafka
from odradek.common.errors import ConfigError
from odradek.spark.sink.options import sink_options
from odradek.spark.sink.rows import GATHERED_ROWS, RowLayout, WrongRows, row_layout, tables_by_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS = """
    SELECT concat('key ', id) AS key, CAST(concat('value ', id) AS BINARY) AS value,
           array(named_struct('key', 'n', 'value', CAST(CAST(id AS STRING) AS BINARY))) AS headers,
           0 AS partition, current_timestamp() AS timestamp, 'ignored' AS other
    FROM range(100)
"""
RECORDS = [Record(b"value %d" % index, b"key %d" % index, (("n", b"%d" % index),), 0) for index in range(100)]
SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def write(frame: DataFrame, bootstrap: str, mode: str = "append", **options: Any) -> None:
    writer = frame.coalesce(1).write.format("odradek").mode(mode)
    writer.option("kafka.bootstrap.servers", bootstrap).options(**options).save()


def sentence_of(error: pytest.ExceptionInfo[Exception]) -> str:
    """The last line of the Python traceback that Spark passes on."""
    lines = [line for line in str(error.value).splitlines() if line.startswith("odradek.")]
    return lines[-1].partition(": ")[2] if lines else str(error.value)


# On a broker.


def test_a_batch_writes_all_that_a_record_has(spark, bootstrap, librdkafka, topic):
    librdkafka.create_topic(topic, partitions=2)
    write(spark.sql(ROWS), bootstrap, topic=topic)
    assert without_time(librdkafka.consume(topic, 100)) == RECORDS

    times = spark.sql(
        "SELECT CAST(NULL AS STRING) AS value, 0 AS partition, timestamp_millis(5) AS timestamp"
    )
    write(times, bootstrap, topic=topic, includeTimestamp=True, **{"kafka.compression.type": "zstd"})
    (last,) = librdkafka.consume(topic, 1, start=100)
    assert last.record == Record(None, None, (), 5)


def test_rows_choose_their_topics_and_partitions(spark, bootstrap, librdkafka, topic):
    names = [f"{topic}-{number}" for number in range(3)]
    for name in names:
        librdkafka.create_topic(name, partitions=2)
    frame = spark.sql(
        f"""SELECT concat('{topic}-', id % 3) AS topic, CAST(id AS STRING) AS value,
            IF(id < 15, 1, NULL) AS partition FROM range(30)"""
    )
    write(frame, bootstrap)
    rows = read_back(spark, bootstrap, f"{topic}-.*")
    assert sorted(int(row.value) for row in rows) == list(range(30))
    assert all(row.topic == names[int(row.value) % 3] for row in rows)
    assert {row.partition for row in rows if int(row.value) < 15} == {1}

    write(frame, bootstrap, topic=f"{topic}-0")  # the option wins
    assert len(read_back(spark, bootstrap, f"{topic}-0")) == 40


def test_keys_go_where_the_official_sink_sends_them(spark, bootstrap, librdkafka, topic):
    ours, theirs = f"{topic}-ours", f"{topic}-theirs"
    for name in (ours, theirs):
        librdkafka.create_topic(name, partitions=5)
    frame = spark.sql("SELECT CAST(id AS STRING) AS key, CAST(id AS STRING) AS value FROM range(200)")
    write(frame, bootstrap, topic=ours)
    official = frame.write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    official.option("topic", theirs).save()

    def places(name: str) -> dict[bytes, int]:
        return {bytes(row.key): row.partition for row in read_back(spark, bootstrap, name)}

    assert places(ours) == places(theirs)


def test_a_stream_continues_where_it_stopped(spark, bootstrap, librdkafka, topic, tmp_path):
    stream_through(spark, bootstrap, librdkafka, topic, str(tmp_path))


def test_the_same_into_apache_kafka(spark, kafka, topic, tmp_path):
    bootstrap, _ = kafka
    librdkafka = Librdkafka(bootstrap)
    librdkafka.create_topic(topic, partitions=2)
    write(spark.sql(ROWS), bootstrap, topic=topic, **{"kafka.compression.type": "lz4"})
    assert without_time(librdkafka.consume(topic, 100)) == RECORDS
    stream_through(spark, bootstrap, librdkafka, f"{topic}-stream", str(tmp_path / "checkpoint"))


def test_a_row_that_cannot_be_written_says_where_and_why(spark, bootstrap, librdkafka, topic):
    librdkafka.create_topic(topic, partitions=2)
    with pytest.raises(Exception, match="topic") as wrong_partition:
        write(spark.sql("SELECT 'a' AS value, 7 AS partition"), bootstrap, topic=topic)
    assert sentence_of(wrong_partition) == (
        f"cannot write into topic '{topic}': topic {topic} has 2 partitions, and no 7"
    )
    with pytest.raises(Exception, match="null in the column topic"):
        write(spark.sql("SELECT 'a' AS value, CAST(NULL AS STRING) AS topic"), bootstrap)
    write(spark.sql("SELECT 'a' AS value, 0 AS partition"), bootstrap, topic=topic)  # the worker goes on
    assert librdkafka.first_and_next_offset(topic) == (0, 2)  # the record, and the end of its transaction


def test_what_cannot_work_is_refused_before_any_task(spark, bootstrap, topic):
    with pytest.raises(Exception, match="topic") as no_topic:
        write(spark.sql("SELECT 'a' AS value"), bootstrap)
    assert sentence_of(no_topic) == (
        "no topic: give the option topic, or a column named topic for each row's own"
    )
    with pytest.raises(Exception, match="a topic cannot be overwritten"):
        write(spark.sql("SELECT 'a' AS value"), bootstrap, mode="overwrite", topic=topic)


def read_back(spark: Any, bootstrap: str, pattern: str) -> list[Any]:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    rows: list[Any] = reader.option("subscribePattern", pattern).load().collect()
    return rows


def stream_through(spark: Any, bootstrap: str, librdkafka: Librdkafka, topic: str, checkpoint: str) -> None:
    """Two runs of one query, each over half of the records."""
    source, target = f"{topic}-source", f"{topic}-target"
    librdkafka.create_topic(source)
    librdkafka.create_topic(target)
    for half in (RECORDS[:50], RECORDS[50:]):
        librdkafka.produce(source, half)
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        reader = reader.option("subscribe", source).options(startingOffsets="earliest", includeHeaders=True)
        frame = reader.option("maxOffsetsPerTrigger", 40).load().select("key", "value", "headers")
        writer = frame.writeStream.format("odradek").option("kafka.bootstrap.servers", bootstrap)
        writer = writer.option("topic", target).option("checkpointLocation", checkpoint).queryName(topic)
        assert writer.trigger(availableNow=True).start().awaitTermination(200)
    assert without_time(librdkafka.consume(target, 100)) == RECORDS
    # With the end of a transaction for each micro-batch: 40, 10, 40 and 10 records.
    assert librdkafka.first_and_next_offset(target) == (0, 104)


# Without one.


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "the option kafka.bootstrap.servers is missing"),
        ({**SERVERS, "delivery": "at-most-once"}, "it must be exactly-once or at-least-once"),
        (
            {**SERVERS, "kafka.acks": "1"},
            "exactly once contradicts acks=1: it needs acks=all; or set delivery",
        ),
        ({**SERVERS, "kafka.transactional.id": "a"}, "the name of the query is its transactional id"),
        ({**SERVERS, "topics": "a"}, "did you mean topic?"),
        ({**SERVERS, "includeTimestamp": "yes"}, "it must be true or false"),
        ({**SERVERS, "kafka.key.serializer": "x"}, "cast key and value"),
        ({**SERVERS, "kafka.ack": "all"}, "did you mean acks?"),
        ({"kafka.bootstrap.servers": "a:b"}, "is not host:port"),
    ],
)
def test_wrong_options_are_named(options, problem):
    with pytest.raises(ConfigError, match=problem.replace("?", r"\?")):
        sink_options(options)


def test_options_of_readers_may_be_there_as_well():
    given = {**SERVERS, "subscribe": "a", "kafka.group.id": "g", "kafka.acks": "1", "TOPIC": "t"}
    given["delivery"] = "at-least-once"
    options = sink_options(given)
    assert dict(options.producer) == {"bootstrap_servers": "localhost:9092", "acks": "1"}
    assert options.topic == "t"


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ("key string", "the column value is missing"),
        ("value int", "the column value is of type int; it must be string or binary"),
        ("value string, key double", "the column key is of type double"),
        ("value string, topic int", "the column topic is of type int; it must be string"),
        ("value string, headers map<string,binary>", "the column headers is of type map<string,binary>"),
        ("value string, partition string", "the column partition is of type string; it must be int"),
    ],
)
def test_wrong_columns_are_named(columns, problem):
    from pyspark.sql.types import StructType

    options = sink_options(SERVERS if "topic" in columns else {**SERVERS, "topic": "a"})
    with pytest.raises(WrongRows, match=problem):
        row_layout(StructType.fromDDL(columns + ", x int"), options)


def test_small_batches_are_gathered_and_topics_kept_apart():
    batch = pa.record_batch({"topic": ["a", "b"] * 500, "value": [str(n) for n in range(1000)]})
    layout = RowLayout((("value", 1),), None, 0)
    tables = list(tables_by_topic(layout, [batch] * 70))
    assert [(topic, table.num_rows) for topic, table in tables] == [
        ("a", 33_000),
        ("b", 33_000),
        ("a", 2_000),
        ("b", 2_000),
    ]
    assert GATHERED_ROWS <= 66_000
    assert tables[0][1].column("value")[1].as_py() == "2"


def test_the_streams_batch_id_is_known_in_tasks(spark):
    """Undocumented, and needed by a delivery that must tell a repeated micro-batch from a new one."""
    frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()

    def with_id(batches):
        from pyspark import TaskContext

        for batch in batches:
            number = TaskContext.get().getLocalProperty("streaming.sql.batchId")
            yield pa.record_batch({"id": [number] * batch.num_rows})

    query = frame.mapInArrow(with_id, "id string").writeStream.format("memory").queryName("batch_ids")
    query = query.trigger(availableNow=True).start()
    assert query.awaitTermination(200)
    ids = {row.id for row in spark.sql("SELECT id FROM batch_ids").collect()}
    assert ids
    assert all(one.isdigit() for one in ids)
