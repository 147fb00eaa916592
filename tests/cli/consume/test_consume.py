from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

COMMAND = [sys.executable, "-m", "odradek.cli.main", "consume"]


@pytest.fixture
def produce(cli, topic) -> Callable[..., None]:
    """Sends values to partition 0 of this test's topic, at 1000, 2000 …; each with its number as a key."""

    def send(values: list[str | None], partition: int = 0, **settings: str) -> None:
        producer = Producer({"bootstrap.servers": cli.bootstrap, **settings})
        for number, value in enumerate(values, 1):
            producer.produce(
                topic,
                value,
                key=str(number),
                partition=partition,
                timestamp=number * 1000,
                headers={"h": b"1"},
            )
        assert producer.flush(30) == 0

    return send


@pytest.fixture
def filled(make_topic, produce, topic):
    make_topic()
    produce(["one", "two", None, "four"])
    return topic


def test_values_are_printed_line_by_line(cli, filled):
    assert cli.lines("consume", filled, "-e") == ["one", "two", "", "four"]
    assert cli.lines("consume", "-t", filled, "-e", "-Z", "-K", ":") == ["1:one", "2:two", "3:NULL", "4:four"]
    assert cli.run("consume", filled, "-e", "-D", "|").stdout == "one|two||four|"


@pytest.mark.parametrize(
    ("flags", "values"),
    [
        (["-o", "-2"], ["", "four"]),
        (["-o", "1", "-c", "1"], ["two"]),
        (["-o", "end"], []),
        (["-o", "s@3000"], ["", "four"]),
        (["-o", "s@2000", "-o", "e@4000"], ["two", ""]),
        (["-o", "e@2000"], ["one"]),
        (["--from-beginning", "--max-messages", "2"], ["one", "two"]),
        (["-c", "0"], []),
    ],
)
def test_where_to_begin_and_to_stop(cli, filled, flags, values):
    assert cli.lines("consume", filled, "-e", *flags) == values


def test_a_format_string_and_json_and_kafkas_columns(cli, filled):
    (line,) = cli.lines("consume", filled, "-c", "1", "-f", "%t %p %o %T %k %s %h\\n")
    assert line == f"{filled} 0 0 1000 1 one h=1"
    rows = [json.loads(line) for line in cli.lines("consume", filled, "-J", "-c", "3")]
    assert [row["payload"] for row in rows] == ["one", "two", None]
    assert cli.lines("consume", filled, "-J", "-e") == cli.lines("consume", filled, "-o", "json", "-e")
    (line,) = cli.lines("consume", filled, "-c", "1", "--property", "print.key=true")
    assert line == "1\tone"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read(cli, topic, make_topic, produce, codec):
    make_topic()
    produce([str(number) for number in range(500)], **{"compression.type": codec})
    assert cli.lines("consume", topic, "-e") == [str(number) for number in range(500)]


def test_several_partitions_are_read_to_their_ends(cli, topic, make_topic, produce):
    make_topic("--partitions", "3")
    for partition in range(3):
        produce([f"{partition}-{number}" for number in range(20)], partition)
    expected = [f"{partition}-{number}" for partition in range(3) for number in range(20)]
    assert sorted(cli.lines("consume", topic, "-e")) == sorted(expected)
    assert cli.lines("consume", topic, "-e", "-p", "1") == expected[20:40]


def test_records_far_larger_than_a_fetch_are_read(cli, topic, make_topic, produce):
    make_topic("--config", "max.message.bytes=8000000")
    values = [letter * 3_000_000 for letter in "abc"]
    produce(values, **{"message.max.bytes": "8000000"})
    assert cli.lines("consume", topic, "-e") == values


def test_a_topic_that_was_emptied_is_read_from_what_is_left(cli, filled):
    cli.run("offsets", "delete-records", filled, "--before", "2")
    assert cli.lines("consume", filled, "-o", "0", "-e") == ["", "four"]


def test_nothing_for_a_while_may_be_the_end(cli, filled):
    assert cli.lines("consume", filled, "--timeout-ms", "50") == ["one", "two", "", "four"]


@pytest.mark.parametrize(
    ("flags", "exit_code", "words"),
    [
        (["-o", "99"], 1, "ends at offset 4; there is no offset 99 yet"),
        (["-p", "7"], 1, "has no partition 7; it has 0 to 0"),
        (["-o", "soon"], 2, "is none of beginning, end"),
        (["-f", "%x"], 2, "-f has no %x"),
        (["-f", "%s", "-J"], 2, "-f and -J exclude each other"),
        (["--property", "print.kee=true"], 2, "--property print.kee: there are"),
        (["-X", "request.timeout=1"], 2, "did you mean request_timeout_ms?"),
        (["-X", "nothing"], 2, "is not NAME=VALUE"),
    ],
)
def test_a_mistake_is_reported(cli, filled, flags, exit_code, words):
    assert words in cli.error("consume", filled, *flags, exit_code=exit_code)


def test_a_topic_that_is_not_there_is_reported(cli, filled):
    assert f"did you mean {filled}" in cli.error("consume", filled + "s")
    assert "no topic given" in cli.error("consume", exit_code=2)


def start(cli, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "ODRADEK_BOOTSTRAP": cli.bootstrap}
    return subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_a_quiet_end_after_all_that_was_read(cli, filled, number):
    with start(cli, filled) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(4)] == [b"one\n", b"two\n", b"\n", b"four\n"]
        process.send_signal(number)
        assert process.communicate(timeout=30) == (b"", b"")
        assert process.returncode == 0


def test_what_comes_later_is_printed_when_it_comes(cli, filled, produce):
    with start(cli, filled, "-c", "5") as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(4)][-1] == b"four\n"
        produce(["five"])
        assert process.communicate(timeout=30) == (b"five\n", b"")
        assert process.returncode == 0


def test_a_reader_that_has_had_enough_is_no_traceback(cli, topic, make_topic, produce):
    make_topic()
    produce(["x" * 1000] * 2000)
    with start(cli, topic) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        produce(["x" * 1000] * 200)
        assert process.wait(30) == 1
        assert process.stderr is not None
        assert process.stderr.read() == b""


def offsets(cli, group):
    return [row["current_offset"] for row in cli.objects("groups", "describe", group)]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_continues_where_it_left_off(cli, filled, produce, protocol):
    read = ("consume", filled, "--group", f"{filled}-{protocol}", "-X", f"group.protocol={protocol}")
    assert cli.lines(*read, "-c", "3") == ["one", "two", ""]
    assert offsets(cli, f"{filled}-{protocol}") == [3]
    assert cli.lines(*read, "-e") == ["four"]
    assert cli.lines(*read, "-e") == []
    produce(["five"])
    assert cli.lines(*read, "-c", "1") == ["five"]
    assert offsets(cli, f"{filled}-{protocol}") == [5]


def test_a_group_may_begin_with_what_comes_next(cli, filled):
    assert cli.lines("consume", filled, "-G", f"{filled}-new", "-o", "end", "-e") == []
    assert offsets(cli, f"{filled}-new") == [4]
    assert cli.lines("consume", filled, "-X", f"group.id={filled}-other", "-e", "-o", "earliest")[0] == "one"
    assert offsets(cli, f"{filled}-other") == [4]


def test_one_partition_may_be_read_for_a_group(cli, topic, make_topic, produce):
    make_topic("--partitions", "2")
    produce(["a", "b"], 0)
    produce(["c", "d"], 1)
    assert cli.lines("consume", topic, "--group", f"{topic}-g", "-p", "1", "-e") == ["c", "d"]
    assert offsets(cli, f"{topic}-g") == [2]
    assert cli.lines("consume", topic, "--group", f"{topic}-g", "-e") == ["a", "b"]
    assert offsets(cli, f"{topic}-g") == [2, 2]


def test_without_auto_commit_a_group_stays_where_it_is(cli, filled):
    read = ("consume", filled, "--group", f"{filled}-g", "-X", "enable.auto.commit=false", "-e", "-c", "1")
    assert cli.lines(*read) == cli.lines(*read) == ["one"]


@pytest.mark.parametrize("where", ["7", "-1", "s@1000", "e@1000"])
def test_a_group_has_its_own_offsets_to_begin_with(cli, filled, where):
    reported = cli.error("consume", filled, "--group", "g", "-o", where, exit_code=2)
    assert "`odradek groups reset-offsets` moves a group" in reported


def test_an_interrupt_commits_what_was_printed_and_leaves(cli, topic, make_topic, produce):
    make_topic("--partitions", "2")
    produce(["a"], 0)
    produce(["b"], 1)
    with start(cli, topic, "--group", f"{topic}-g") as process:
        assert process.stdout is not None
        assert {process.stdout.readline() for _ in range(2)} == {b"a\n", b"b\n"}
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30) == (b"", b"")
    assert offsets(cli, f"{topic}-g") == [1, 1]
    (state,) = cli.objects("groups", "describe", f"{topic}-g", "--state")
    assert (state["state"], state["members"]) == ("Empty", 0)
