"""Our stream and the official connector's, with the same options: the same rows, micro-batches and tasks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat.clients.librdkafka import Librdkafka
from odradek import Producer
from spark.pipeline.terminal import until
from spark.reading import rows

BEGIN_MS = 1_700_000_000_000
TOPIC, LONGER = "same-streams", "same-streams-longer"
SIZES = {0: 90, 1: 60, 2: 30}
EARLIEST = {"startingOffsets": "earliest"}
OPTIONS: dict[str, dict[str, Any]] = {
    "assign": {"assign": json.dumps({TOPIC: [0, 2]}), **EARLIEST},
    "pattern": {"subscribePattern": "same-s.*ms", **EARLIEST},
    "whole-pattern": {"subscribePattern": "^same-s.*ms$", **EARLIEST},
    "offsets": {"startingOffsets": json.dumps({TOPIC: {"0": 40, "1": -2, "2": -1}})},
    "assigned-offsets": {
        "assign": json.dumps({TOPIC: [1]}),
        "startingOffsets": json.dumps({TOPIC: {"1": 59}}),
    },
    "time": {"startingTimestamp": BEGIN_MS + 25},
    "late-time": {"startingTimestamp": BEGIN_MS + 75, "startingOffsetsByTimestampStrategy": "latest"},
    "times": {
        "startingOffsetsByTimestamp": json.dumps({TOPIC: {"0": BEGIN_MS + 3, "1": BEGIN_MS + 59, "2": 0}})
    },
    "min-partitions": {"minPartitions": 7, **EARLIEST},
    "max-records": {"maxRecordsPerPartition": 11, **EARLIEST},
    "limits": {"maxOffsetsPerTrigger": 70, "minPartitions": 5, "maxRecordsPerPartition": 20, **EARLIEST},
}
"""Options of both; without another subscription, the topic is subscribed."""


def produce(bootstrap: str, topic: str, partition: int, numbers: range) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for n in numbers:
            header = [("n", b"%d" % n)]
            value = b"%d-%d" % (partition, n)
            producer.send(topic, value, partition=partition, headers=header, timestamp=BEGIN_MS + n)


@pytest.fixture(scope="module")
def written(bootstrap: str) -> str:
    """The address of a broker with a topic of three partitions, and one whose name begins alike."""
    librdkafka = Librdkafka(bootstrap)
    librdkafka.create_topic(TOPIC, partitions=len(SIZES))
    librdkafka.create_topic(LONGER)
    for partition, size in SIZES.items():
        produce(bootstrap, TOPIC, partition, range(size))
    produce(bootstrap, LONGER, 0, range(5))
    return bootstrap


def begun(spark: Any, source: str, bootstrap: str, state: Path, **options: Any) -> Any:
    """A stream into the table named as its source, not started."""
    if not options.keys() & {"assign", "subscribePattern", "subscribe"}:
        options |= {"subscribe": TOPIC}
    reader = spark.readStream.format(source).option("kafka.bootstrap.servers", bootstrap)
    frame = reader.options(includeHeaders=True, **options).load()
    frame = frame.selectExpr("*", "spark_partition_id() AS task")
    writer = frame.writeStream.format("memory").queryName(f"rows_of_{source}")
    return writer.option("checkpointLocation", str(state / source))


def batch_sizes(query: Any) -> list[int]:
    return [one.numInputRows for one in query.recentProgress if one.numInputRows]


@pytest.mark.parametrize("name", OPTIONS)
def test_the_same_options_drain_the_same_rows(spark, written, tmp_path, name):
    found, sizes, tasks = {}, {}, {}
    for source in ("odradek", "kafka"):
        query = begun(spark, source, written, tmp_path, **OPTIONS[name]).trigger(availableNow=True).start()
        assert query.awaitTermination(200)
        table = spark.table(f"rows_of_{source}")
        found[source], sizes[source] = rows(table.drop("task")), batch_sizes(query)
        tasks[source] = table.select("task").distinct().count()
    assert found["odradek"]
    assert found["odradek"] == found["kafka"]
    assert sizes["odradek"] == sizes["kafka"]
    # The official connector makes about as many tasks as minPartitions says, ours at least as many.
    least = OPTIONS[name].get("minPartitions")
    assert tasks["odradek"] == tasks["kafka"] if least is None else tasks["odradek"] >= least


@pytest.mark.parametrize("delay", ["1h", "3s"])
def test_micro_batches_wait_for_the_same_rows(spark, bootstrap, tmp_path, delay):
    """Thirty records are too few for a micro-batch: it waits for thirty more, or for three seconds."""
    topic = f"same-waits-{delay}"
    options = {"subscribe": topic, "minOffsetsPerTrigger": 50, "maxTriggerDelay": delay, **EARLIEST}
    Librdkafka(bootstrap).create_topic(topic)
    produce(bootstrap, topic, 0, range(100))
    queries = [begun(spark, one, bootstrap, tmp_path, **options).start() for one in ("odradek", "kafka")]
    try:
        until_batches(queries, [100])
        produce(bootstrap, topic, 0, range(100, 130))
        if delay == "1h":
            time.sleep(2)
            produce(bootstrap, topic, 0, range(130, 160))
        until_batches(queries, [100, 60 if delay == "1h" else 30])
    finally:
        for query in queries:
            query.stop()
    ours, theirs = (rows(spark.table(f"rows_of_{one}")) for one in ("odradek", "kafka"))
    assert ours == theirs


def until_batches(queries: list[Any], expected: list[int]) -> None:
    """Wait until each query has made as many micro-batches, and look at their sizes."""
    has_made: Callable[[], bool] = lambda: all(len(batch_sizes(one)) >= len(expected) for one in queries)  # noqa: E731
    until(has_made, patience_s=60)
    assert [batch_sizes(one) for one in queries] == [expected] * len(queries)
