"""Log directories read by format("odradek-segments"), beside what their broker gives."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from odradek.common.errors import ConfigError
from odradek.spark.errors import sentence_of
from odradek.spark.segments.options import segment_options
from odradek.testing import Cluster
from spark.reading import read, rows

SEGMENTS = Path(__file__).parents[2] / "data" / "segments"
BEGIN_MS = 1_700_000_000_000
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def segments(spark: Any, path: Path, **options: Any) -> Any:
    return spark.read.format("odradek-segments").options(**options).load(str(path))


def test_a_log_directory_has_the_rows_of_its_topics(spark, tmp_path):
    with Cluster(process=True) as cluster:
        librdkafka = Librdkafka(cluster.bootstrap)
        librdkafka.create_topic("orders", partitions=2)
        for index in range(8):
            values = [b"%d" % number * 100 for number in range(50)]
            times = [BEGIN_MS + index * 50 + number for number in range(50)]
            records = [
                Record(value, b"key", (("n", b"1"),) * (index % 2), time)
                for value, time in zip(values, times, strict=True)
            ]
            librdkafka.produce("orders", records, codec="none")
        librdkafka.produce("clicks", [Record(b"one")], codec="zstd")
        expected = rows(read(spark, "odradek", cluster.bootstrap, "orders,clicks", includeHeaders=True))
        cluster.stop()
        directory = next(cluster.data_dir.rglob("orders-0")).parent

        found = segments(spark, directory, includeHeaders=True, maxBytesPerPartition=10_000)
        assert rows(found) == expected
        assert found.rdd.getNumPartitions() >= 4  # parts of one segment
        assert len(rows(segments(spark, directory, subscribePattern="cl.*"))) == 1

        conditions = (
            "topic = 'orders' AND partition = 0 AND offset < 390 "
            f"AND timestamp BETWEEN timestamp_millis({BEGIN_MS + 380}) AND timestamp_millis({BEGIN_MS + 395})"
        )
        spark.conf.set(PUSHDOWN, "true")
        try:
            pushed = segments(spark, directory).where(conditions)
            assert [row.offset for row in rows(pushed)] == list(range(380, 390))
            assert pushed.rdd.getNumPartitions() < 3  # other segments are not looked at
        finally:
            spark.conf.unset(PUSHDOWN)


def test_aborted_transactions_are_left_out_by_the_files_alone(spark):
    committed = {row.offset for row in rows(segments(spark, SEGMENTS / "transactions"))}
    every = rows(segments(spark, SEGMENTS / "transactions", isolationLevel="read_uncommitted"))
    aborted = [bytes(row.value) for row in every if row.offset not in committed]
    assert len(every) == 12
    assert len(aborted) == 3
    assert len(set(aborted)) == 3


def test_what_cannot_be_read_is_one_sentence(spark, tmp_path):
    with pytest.raises(Exception, match="is not there") as missing:
        segments(spark, tmp_path / "missing").count()
    assert sentence_of(missing.value).startswith(f"{tmp_path / 'missing'} is not there: give a directory")
    with pytest.raises(Exception, match="neither a partition's directory"):
        segments(spark, tmp_path).count()
    with pytest.raises(Exception, match="has no partition of topic 'clicks'"):
        segments(spark, SEGMENTS / "java", subscribe="clicks").count()

    damaged = tmp_path / "orders-0"
    shutil.copytree(SEGMENTS / "java", damaged)
    log = damaged / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[200] ^= 1
    log.write_bytes(content)
    with pytest.raises(Exception, match="odradek") as corrupt:
        segments(spark, tmp_path).count()
    assert str(log) in sentence_of(corrupt.value)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "the path is missing"),
        ({"path": "/a", "subscribe": "a", "subscribePattern": "b"}, "not both"),
        ({"path": "/a", "subscribePattern": "("}, "is no regular expression"),
        ({"path": "/a", "isolationLevel": "committed"}, "it must be read_committed or read_uncommitted"),
        ({"path": "/a", "maxBytesPerPartition": "0"}, "must be an integer of at least 1"),
        ({"path": "/a", "includeHeader": "true"}, "did you mean includeHeaders"),
    ],
)
def test_wrong_options_are_named(options, problem):
    with pytest.raises(ConfigError, match=problem):
        segment_options(options)


def test_internal_topics_are_read_only_when_named():
    assert not segment_options({"path": "/a"}).has("__consumer_offsets")
    assert segment_options({"path": "/a", "subscribe": "__consumer_offsets"}).has("__consumer_offsets")
