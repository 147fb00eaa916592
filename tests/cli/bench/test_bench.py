"""`odradek bench` by its real command line, in tiny runs."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest

from cli.conftest import Cli
from client.eventually import eventually
from odradek.cli.bench.run_topic import PREFIX

COMMAND = [sys.executable, "-m", "odradek.cli.main", "bench"]
PERCENTILES = ["p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms"]


def made_topics(cli: Cli) -> list[str]:
    return [name for name in cli.lines("topics", "list") if name.startswith(PREFIX)]


def is_ascending(row: dict[str, float]) -> bool:
    values = [row[name] for name in PERCENTILES]
    return values == sorted(values) and values[0] > 0


@pytest.mark.parametrize("flags", [[], ["--table"]], ids=["records", "tables"])
def test_produce_reports_rates_and_latencies(cli, flags):
    (row,) = cli.objects("bench", "produce", "--records", "12000", "--record-size", "50", *flags)
    assert row["records"] == 12_000
    assert row["records_per_sec"] == pytest.approx(12_000 / row["seconds"], rel=0.5)
    assert row["mb_per_sec"] == pytest.approx(row["records_per_sec"] * 50 / 1024 / 1024, abs=0.01, rel=0.01)
    assert is_ascending(row)


def test_a_line_is_as_of_kafkas_tool(cli):
    (line,) = cli.lines("bench", "produce", "--num-records", "10", "--throughput", "-1", "--acks", "1")
    pattern = (
        r"10 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, "
        r"[\d.]+ ms max latency, [\d.]+ ms 50th, [\d.]+ ms 95th, [\d.]+ ms 99th, [\d.]+ ms 99\.9th\."
    )
    assert re.fullmatch(pattern, line), line


def test_produce_fills_a_topic_that_is_there_and_leaves_it(cli, topic, make_topic):
    make_topic("--partitions", "3")
    flags = ("--record-size", "7", "--compression", "lz4", "--batch-size", "1000", "--linger-ms", "1")
    cli.run("bench", "produce", "--topic", topic, "--records", "500", *flags)
    values = cli.lines("consume", topic, "-e")
    assert [len(value) for value in values] == [7] * 500


def test_a_topic_of_the_run_goes_with_it(cli):
    cli.run("bench", "produce", "--records", "10", "--partitions", "2")
    cli.run("bench", "consume", "--records", "10")
    cli.run("bench", "latency", "--records", "2")
    assert made_topics(cli) == []


@pytest.mark.parametrize(
    "flags", [[], ["--table"], ["--group", "readers"]], ids=["records", "tables", "in-a-group"]
)
def test_consume_reads_all_that_is_there(cli, topic, make_topic, flags):
    make_topic("--partitions", "3")
    cli.run("bench", "produce", "--topic", topic, "--records", "2000", "--record-size", "50")
    (row,) = cli.objects("bench", "consume", "--topic", topic, *flags)
    assert row["records"] == 2000
    assert row["mb_per_sec"] == pytest.approx(row["records_per_sec"] * 50 / 1024 / 1024, abs=0.01, rel=0.01)
    assert 0 < row["first_record_ms"] <= row["seconds"] * 1000 + 1


def test_a_group_continues_where_it_was(cli, topic, make_topic):
    make_topic()
    place = ("--topic", topic, "--group", topic)
    cli.run("bench", "produce", "--topic", topic, "--records", "100")
    assert cli.objects("bench", "consume", *place, "--records", "30")[0]["records"] == 30
    assert cli.objects("bench", "consume", *place)[0]["records"] == 70


def test_consume_reports_the_columns_of_kafkas_tool(cli):
    header, line = cli.lines("bench", "consume", "--messages", "100", "--record-size", "1024")
    columns = dict(zip(header.split(", "), line.split(", "), strict=True))
    assert columns["data.consumed.in.nMsg"] == "100"
    assert float(columns["data.consumed.in.MB"]) == pytest.approx(100 / 1024, abs=1e-4)


def test_fewer_records_than_wanted_are_reported(cli, topic, make_topic):
    make_topic()
    cli.run("bench", "produce", "--topic", topic, "--records", "5")
    wanted = ("--records", "6", "--timeout", "300")
    result = cli.run("bench", "consume", "--topic", topic, *wanted, "-o", "json", exit_code=1)
    assert json.loads(result.stdout)["records"] == 5
    assert result.stderr == "Error: 5 of 6 records were read: no more came within 300 ms\n"


def test_latency_times_both_ways_and_draws_them(cli):
    rows = cli.objects("bench", "latency", "--records", "20")
    assert [(row["what"], row["records"]) for row in rows] == [("send", 20), ("end to end", 20)]
    assert all(is_ascending(row) for row in rows)
    assert [sum(bar["count"] for bar in row["histogram"]) for row in rows] == [20, 20]

    drawn = cli.run("bench", "latency", "--records", "20").stdout
    assert drawn.count("Percentiles: 50th = ") == 2
    assert re.search(r"\d - +[\d.]+ ms  #+ +\d+\n", drawn)


def test_latency_is_not_misled_by_other_records(cli, topic, make_topic):
    make_topic()
    cli.run("bench", "produce", "--topic", topic, "--records", "50")
    rows = cli.objects("bench", "latency", "--topic", topic, "--records", "5", "--record-size", "0")
    assert [row["records"] for row in rows] == [5, 5]


def test_a_rate_is_kept(cli):
    (row,) = cli.objects("bench", "produce", "--records", "60", "--throughput", "200")
    assert row["seconds"] >= 59 / 200 - 0.01


def test_lines_report_the_progress_where_no_bar_is_shown(cli):
    flags = ("--records", "40", "--throughput", "100", "--reporting-interval", "50")
    reported = cli.run("bench", "produce", *flags).stderr.splitlines()
    assert reported
    assert all(re.match(r"produce: \d+ of 40 records, [\d,]+ records/sec \(", line) for line in reported)


@pytest.mark.slow
def test_a_terminal_gets_a_line_that_changes(cli):
    ours, theirs = pty.openpty()
    words = [*COMMAND, "produce", "--records", "60", "--throughput", "100", "-b", cli.bootstrap]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 4096):
                shown += chunk
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        assert process.wait(30) == 0
    assert b"of 60 records" in shown
    assert b"\r" in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "unit"),
    [(["produce"], "records sent"), (["latency"], "Percentiles")],
    ids=["produce", "latency"],
)
def test_ctrl_c_reports_the_figures_so_far_and_cleans_up(cli, words, unit):
    flags = ["--records", "100000", "--throughput", "50", "--reporting-interval", "50", "-b", cli.bootstrap]
    with subprocess.Popen(
        [*COMMAND, *words, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert "of 100,000 records" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        reported, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    assert unit in reported
    assert "Traceback" not in complaint
    eventually(lambda: made_topics(cli) == [])


@pytest.mark.slow
def test_ctrl_c_ends_consume_with_what_it_has(cli, topic, make_topic):
    make_topic()
    cli.run("bench", "produce", "--topic", topic, "--records", "5")
    flags = ["--topic", topic, "--records", "9", "--timeout", "60000", "--reporting-interval", "20"]
    with subprocess.Popen(
        [*COMMAND, "consume", *flags, "-o", "json", "-b", cli.bootstrap],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        while "5 of 9 records" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        reported, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(reported)["records"] == 5
    assert "Traceback" not in complaint


@pytest.mark.parametrize("what", ["produce", "consume", "latency"])
def test_an_unreachable_cluster_is_reported_with_the_next_step(what):
    reported = Cli("127.0.0.1:1").error("bench", what)
    assert "no bootstrap server can be reached" in reported
    assert "`odradek start` starts one" in reported


@pytest.mark.parametrize(
    ("words", "exit_code", "sentence"),
    [
        (["produce", "--topic", "ordres"], 1, "there is no topic 'ordres'"),
        (
            ["produce", "--topic", "orders", "--partitions", "3"],
            2,
            "--partitions is for a topic that is made",
        ),
        (["produce", "-X", "lingre.ms=3"], 2, "did you mean linger_ms?"),
        (["produce", "--records", "0"], 2, "x>=1"),
        (["produce", "--records", "1", "--record-size", "2000000"], 1, "max_request_size allows 1048576"),
    ],
)
def test_a_mistake_is_reported(cli, words, exit_code, sentence):
    assert sentence in cli.error("bench", *words, exit_code=exit_code)
    assert made_topics(cli) == []


def test_records_that_the_broker_refuses_are_reported_with_the_reason(cli, topic, make_topic):
    make_topic("--config", "cleanup.policy=compact")
    reported = cli.error("bench", "produce", "--topic", topic, "--records", "3")
    assert reported.startswith("Error: 3 of 3 records were not acknowledged: ")
