from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from cli.conftest import Cli
from odradek.testing import Cluster

COMMAND = [sys.executable, "-m", "odradek.cli.main"]


def rows(cli: Cli, topic: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in cli.lines("consume", topic, "-e", "-J")]


def test_lines_become_records(cli, topic, make_topic):
    make_topic()
    assert cli.lines("produce", topic, typed="one\ntwo\n\nlast") == []
    assert cli.lines("consume", topic, "-e") == ["one", "two", "", "last"]


def test_keys_headers_and_nulls(cli, topic, make_topic):
    make_topic()
    cli.run("produce", "-t", topic, "-K", ":", "-H", "a=1", "-H", "b", "-Z", typed="k:v\nn:\n")
    reported = [(row["key"], row["payload"], row["headers"]) for row in rows(cli, topic)]
    assert reported == [("k", "v", ["a", "1", "b", None]), ("n", None, ["a", "1", "b", None])]


def test_a_key_decides_the_partition_as_in_java(cli, topic, make_topic):
    make_topic("--partitions", "3")
    cli.run("produce", topic, "-K", ":", typed="k1:v1\nk2:v2\n")
    cli.run("produce", topic, "-p", "1", typed="v3\n")
    where = {row["payload"]: row["partition"] for row in rows(cli, topic)}
    assert where == {"v1": 2, "v2": 0, "v3": 1}


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_written(cli, topic, make_topic, codec):
    make_topic()
    typed = "".join(f"{number}\n" for number in range(500))
    cli.run("produce", topic, "-z", codec, typed=typed)
    assert cli.run("consume", topic, "-e").stdout == typed


def test_files_are_records_or_lines(cli, topic, make_topic, tmp_path):
    make_topic()
    (tmp_path / "a").write_text("1\n2\n")
    (tmp_path / "b").write_text("3")
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    cli.run("produce", topic, "-k", "key", *paths)
    cli.run("produce", topic, "-l", *paths)
    assert [row["payload"] for row in rows(cli, topic)] == ["1\n2\n", "3", "1", "2", "3"]
    assert [row["key"] for row in rows(cli, topic)] == ["key", "key", None, None, None]


def test_a_topic_is_copied_by_a_pipe(cli, topic, make_topic):
    make_topic()
    cli.run("produce", topic, "-K", ":", "-H", "a=1", typed="k:v\nx:\u00fc\n")
    printed = cli.run("consume", topic, "-e", "-J").stdout
    cli.run("produce", f"{topic}-copy", "-J", typed=printed)
    assert cli.run("consume", f"{topic}-copy", "-e", "-J").stdout == printed.replace(topic, f"{topic}-copy")


def test_kafkas_properties_work(cli, topic, make_topic):
    make_topic()
    flags = ("--property", "parse.key=true", "--property", "key.separator==")
    cli.run("produce", topic, *flags, typed="k=v\n")
    assert [(row["key"], row["payload"]) for row in rows(cli, topic)] == [("k", "v")]
    assert "no key" in cli.run("produce", topic, *flags, typed="v\n", exit_code=1).stderr


def test_a_topic_that_is_not_there_is_made_only_if_the_broker_makes_topics(cli, topic):
    cli.run("produce", topic, typed="made\n")
    assert cli.lines("consume", topic, "-e") == ["made"]
    with Cluster({"auto.create.topics.enable": "false"}) as strict:
        strictly = Cli(strict.bootstrap)
        strictly.run("topics", "create", "orders")
        reported = strictly.run("produce", "ordres", typed="lost\n", exit_code=1).stderr
    assert reported == "Error: there is no topic 'ordres'; did you mean orders?\n"


@pytest.mark.parametrize(
    ("flags", "exit_code", "words"),
    [
        (["-p", "7"], 1, "has no partition 7; it has 0 to 0"),
        (["-J", "-K", ":"], 2, "exclude each other"),
        (["-k", "a", "-K", ":"], 2, "exclude each other"),
        (["-K", ""], 2, "-K is empty"),
        (["-D", ""], 2, "-D is empty"),
        (["-H", "=v"], 2, "-H has no name"),
        (["/no/such/file"], 2, "no such file"),
        (["-X", "lingre.ms=1"], 2, "did you mean linger_ms?"),
        (["-X", "max.request.size=10"], 1, "max_request_size allows 10"),
    ],
)
def test_a_mistake_is_reported(cli, topic, make_topic, flags, exit_code, words):
    make_topic()
    assert words in cli.run("produce", topic, *flags, typed="value\n", exit_code=exit_code).stderr


def test_a_record_that_the_broker_refuses_is_reported(cli, topic, make_topic):
    make_topic("--config", "cleanup.policy=compact")
    reported = cli.run("produce", topic, typed="without a key\n", exit_code=1).stderr
    assert reported.startswith("Error: 1 of 1 records were not acknowledged: ")


def test_an_unreachable_cluster_is_reported_before_anything_is_typed():
    reported = Cli("127.0.0.1:1").run("produce", "orders", typed="value\n", exit_code=1).stderr
    assert "`odradek start` starts one" in reported


def start(cli, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "ODRADEK_BOOTSTRAP": cli.bootstrap},
    )


def test_ctrl_c_sends_what_was_read_and_ends_with_an_exit_code(cli, topic, make_topic):
    make_topic()
    with start(cli, "produce", topic) as process:
        assert process.stdin is not None
        process.stdin.write(b"typed\nunfinished")
        process.stdin.flush()
        # What was typed is sent at once, while more may come.
        assert cli.lines("consume", topic, "-c", "1") == ["typed"]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert cli.lines("consume", topic, "-e") == ["typed"]


def test_a_pipe_of_both_moves_many_records(cli, topic, make_topic):
    make_topic("--partitions", "3")
    lines = b"".join(b"%d\n" % number for number in range(50_000))
    with start(cli, "produce", topic) as process:
        assert process.communicate(lines, timeout=60) == (b"", b"")
        assert process.returncode == 0
    with start(cli, "consume", topic, "-e") as process:
        printed, _ = process.communicate(timeout=60)
    assert sorted(printed.splitlines()) == sorted(lines.splitlines())
