"""What a user gets who asks for something that is not there: one sentence that says what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat.clients.face import Record
from odradek.spark.errors import DataLost, sentence_of
from spark.reading import read, rows, stream

RECORDS = [Record(b"value %d" % index) for index in range(100)]


def sentence(act: Callable[[], Any]) -> str:
    with pytest.raises(Exception, match="odradek") as raised:
        act()
    return sentence_of(raised.value)


def test_what_is_not_there_is_named(spark, bootstrap, librdkafka, topic):
    librdkafka.create_topic(topic, partitions=2)

    def said(**options: Any) -> str:
        return sentence(lambda: read(spark, "odradek", bootstrap, **options).count())

    assert said(subscribe="nowhere") == (
        f"topic 'nowhere' does not exist on {bootstrap}: create it, or correct the option subscribe"
    )
    assert said(assign=json.dumps({topic: [0, 7]})) == f"{topic}-7 does not exist: correct the option assign"
    assert said(subscribe=topic, startingOffsets=json.dumps({topic: {"0": 0}})) == (
        f"the option startingOffsets has nothing for {topic}-1: it must name all partitions"
    )
    assert said(subscribe=topic, startingTimestamp=5).startswith(
        f"no record of {topic}-0 is as young as 5 ms"
    )
    refused = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": 2000}
    assert "no bootstrap server can be reached (127.0.0.1:1:" in said(subscribe=topic, **refused)


def test_offsets_gone_by_deletion_end_a_query_or_are_skipped(spark, bootstrap, librdkafka, topic, tmp_path):
    librdkafka.produce(topic, RECORDS)
    stream(spark, bootstrap, topic, tmp_path, startingOffsets="earliest")
    librdkafka.produce(topic, RECORDS)
    librdkafka.delete_records(topic, 150)

    early = {"startingOffsets": json.dumps({topic: {"0": 10}})}
    assert sentence(lambda: read(spark, "odradek", bootstrap, topic, **early).count()) == (
        f"startingOffsets has 10 for {topic}-0, whose log has the offsets 150 to 200: "
        f"give one of these, or failOnDataLoss=false to skip what is gone"
    )
    found = rows(read(spark, "odradek", bootstrap, topic, failOnDataLoss=False, **early))
    assert [row.offset for row in found] == list(range(150, 200))

    lost = sentence(lambda: stream(spark, bootstrap, topic, tmp_path))
    assert lost.startswith(f"offsets 100 to 200 of {topic}-0 were to be read, and its log has 150 to 200")
    assert lost.endswith("start at a later offset, or set failOnDataLoss=false to skip what is gone")
    stream(spark, bootstrap, topic, tmp_path, failOnDataLoss=False)
    written = rows(spark.read.parquet(str(tmp_path / "rows")))
    assert [row.offset for row in written] == [*range(100), *range(150, 200)]


def test_the_checkpoint_of_another_topic_is_refused_and_stays_as_it_was(
    spark, bootstrap, librdkafka, topic, tmp_path
):
    one, other = f"{topic}-one", f"{topic}-other"
    for name in (one, other):
        librdkafka.produce(name, RECORDS)
    stream(spark, bootstrap, one, tmp_path, startingOffsets="earliest")
    assert sentence(lambda: stream(spark, bootstrap, other, tmp_path)) == (
        f"the checkpoint has offsets of {one}-0, which subscribe={other} does not read: give this query a "
        "checkpoint of its own, or subscribe to what its checkpoint has"
    )
    librdkafka.produce(one, RECORDS)
    stream(spark, bootstrap, one, tmp_path)
    assert [row.offset for row in rows(spark.read.parquet(str(tmp_path / "rows")))] == list(range(200))


def test_a_damaged_batch_is_named_and_what_is_before_it_can_be_read(
    spark, cluster, bootstrap, librdkafka, topic
):
    for part in (RECORDS[:50], RECORDS[50:]):
        librdkafka.produce(topic, part)
    damage_last_byte(cluster.data_dir, topic, b"value 99")
    said = sentence(lambda: read(spark, "odradek", bootstrap, topic).count())
    assert said.startswith(f"the batch at offset 50 of {topic}-0 is damaged: its CRC is wrong")
    ended = {"endingOffsets": json.dumps({topic: {"0": 50}})}
    assert read(spark, "odradek", bootstrap, topic, **ended).count() == 50


def damage_last_byte(data_dir: Path, topic: str, value: bytes) -> None:
    """Change a value in the log, which is found by its uncompressed text."""
    (log,) = next(data_dir.rglob(f"{topic}-0")).glob("*.log")
    content = bytearray(log.read_bytes())
    at = content.rindex(value)
    with open(log, "r+b") as file:
        file.seek(at + len(value) - 1)
        file.write(b"!")


def test_a_sentence_is_found_in_what_spark_passes_on():
    lines = [
        "failed: Traceback",
        "  odradek.x",
        "odradek.spark.errors.DataLost: a: b; c",
        " SQLSTATE",
        "\tat java",
    ]
    text = "\n".join(lines)
    assert sentence_of(Exception(text)) == "a: b; c"
    assert sentence_of(DataLost("gone")) == "gone"
    assert sentence_of(ValueError("first\nsecond")) == "first"
