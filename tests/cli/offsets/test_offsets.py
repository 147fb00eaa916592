from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer

from odradek.cli.offsets.partitions import parse_topic_partitions, selected
from odradek.cli.offsets.timestamps import parse_timestamp


@pytest.fixture
def filled(cli, topic, make_topic):
    """Ten records at 1000, 2000 … in the first of two partitions."""
    make_topic("--partitions", "2")
    producer = Producer({"bootstrap.servers": cli.bootstrap})
    for number in range(1, 11):
        producer.produce(topic, b"x", partition=0, timestamp=number * 1000)
    assert producer.flush(30) == 0
    return topic


def test_offsets_are_printed_as_kafka_prints_them(cli, filled):
    assert cli.lines("offsets", "get", filled) == [f"{filled}:0:10", f"{filled}:1:0"]
    assert cli.lines("offsets", "get", filled, "--time", "earliest") == [f"{filled}:0:0", f"{filled}:1:0"]
    assert cli.lines("offsets", "get", filled, "--time", "-2") == [f"{filled}:0:0", f"{filled}:1:0"]
    assert cli.lines("offsets", "get", filled, "--time", "max-timestamp") == [f"{filled}:0:9"]
    assert cli.lines("offsets", "get", filled, "--time", "4500") == [f"{filled}:0:4"]
    assert cli.lines("offsets", "get", filled, "--time", "1970-01-01T00:00:04.500+00:00") == [f"{filled}:0:4"]
    assert cli.lines("offsets", "get", filled, "--time", "2020-01-01") == []


def test_partitions_are_chosen_by_number_and_by_regular_expression(cli, filled):
    assert cli.lines("offsets", "get", filled, "--partitions", "1") == [f"{filled}:1:0"]
    pattern = f"{filled[:-1]}.:0-1"
    assert cli.lines("offsets", "get", "--regex", "--topic-partitions", pattern) == [f"{filled}:0:10"]
    assert cli.error("offsets", "get", filled, "--partitions", "7") == "Error: no partition matches\n"


def test_programs_get_null_where_there_is_no_offset(cli, filled):
    first, second = cli.objects("offsets", "get", filled, "--time", "max-timestamp")
    assert first == {"topic": filled, "partition": 0, "offset": 9, "timestamp_ms": 10_000}
    assert second["offset"] is None


def test_records_are_deleted_before_an_offset(cli, filled, tmp_path):
    line = f"partition: {filled}-0\tlow_watermark: 4"
    assert cli.lines("offsets", "delete-records", filled, "--before", "4", "--partitions", "0") == [line]

    file = tmp_path / "offsets.json"
    file.write_text(
        json.dumps({"partitions": [{"topic": filled, "partition": 0, "offset": 6}], "version": 1})
    )
    (reported,) = cli.objects("offsets", "delete-records", "--offset-json-file", str(file))
    assert reported == {"topic": filled, "partition": 0, "low_watermark": 6}

    assert "OFFSET_OUT_OF_RANGE" in cli.error("offsets", "delete-records", filled, "--before", "99")
    assert [
        row["low_watermark"] for row in cli.objects("offsets", "delete-records", filled, "--before", "end")
    ] == [
        10,
        0,
    ]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("orders", [0, 1, 2, 3]),
        ("orders:1", [1]),
        ("orders:1-3", [1, 2]),
        ("orders:2-", [2, 3]),
        ("orders:-2", [0, 1]),
        (":3", [3]),
        ("ord.*:0,orders:3", [0, 3]),
        ("payments:0", []),
    ],
)
def test_a_range_leaves_its_end_out(text, chosen):
    assert selected(parse_topic_partitions(text, regex=True), "orders", range(4)) == chosen


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["get", "--time", "yesterday"], "'yesterday' is not a timestamp"),
        (["get", "--time", "-9"], "before 1970"),
        (["get", "--partitions", "x"], "not a list of numbers"),
        (["get", "--partitions", "-1"], "negative"),
        (["get", "a", "--topic-partitions", "a:0"], "goes with neither"),
        (["get", "--topic-partitions", "a:x"], "is not TOPIC:PARTITION"),
        (["delete-records"], "either a topic"),
        (["delete-records", "--offset-json-file", "/no/such/file"], "no such file"),
    ],
)
def test_a_mistake_is_reported_with_exit_code_2(cli, arguments, words):
    assert words in cli.error("offsets", *arguments, exit_code=2)


def test_a_file_that_is_no_list_of_offsets_is_reported(cli, tmp_path):
    file = tmp_path / "offsets.json"
    for text in ("[", "{}", '{"partitions": [{"topic": "a"}]}'):
        file.write_text(text)
        assert "does not hold offsets" in cli.error(
            "offsets", "delete-records", "--offset-json-file", str(file), exit_code=2
        )


def test_words_mean_what_the_wire_calls_them():
    assert [parse_timestamp(word) for word in ("latest", "earliest", "max-timestamp", "5")] == [-1, -2, -3, 5]
