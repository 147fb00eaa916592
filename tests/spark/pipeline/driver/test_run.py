"""`odradek pipeline run` as a process: killed, refused, stopped from another terminal.

The test with kills starts three JVMs, and is a command of its own:
make long, or .venv-spark/bin/python -m pytest -m "spark and long" tests/spark/pipeline
"""

from __future__ import annotations

import json
import time

import pyarrow.parquet
import pytest

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from odradek.spark.pipeline.running.state_directory import KILLED, RUNNING
from odradek.testing import Cluster
from spark.pipeline.terminal import Terminal, a_terminal, ends, has_read, until

PIPELINE = """\
name: archive
bootstrap: {bootstrap}
trigger: 500 ms
sources:
  orders:
    topic: orders
    format: json
    schema: {{id: bigint not null}}
    bad_records: dead-letter
    max_offsets_per_trigger: 300
sinks:
  files: {{from: orders, parquet: out}}
dead_letters: orders-dead
"""


@pytest.fixture
def terminal(tmp_path):
    with a_terminal(tmp_path) as terminal:
        yield terminal


def rows_out(terminal: Terminal) -> int:
    return int(terminal.status("archive").progress["queries"].get("files", {}).get("rows_out", 0))


@pytest.mark.long
def test_every_row_is_there_once_after_kills_of_driver_and_broker(terminal, tmp_path):
    good = [Record(json.dumps({"id": number}).encode()) for number in range(3000)]
    bad = [Record(b"bad %d" % number) for number in range(6)]
    # The records are of 2023: on a busy machine retention would come before they are read.
    with Cluster({"log.retention.ms": -1}, process=True) as cluster:
        librdkafka = Librdkafka(cluster.bootstrap)
        librdkafka.create_topic("orders", partitions=2)
        librdkafka.create_topic("orders-dead")
        librdkafka.produce("orders", good[:1500] + bad[:3])
        (tmp_path / "archive.yaml").write_text(PIPELINE.format(bootstrap=cluster.bootstrap))

        run = terminal.start("run", "archive.yaml", "--master", "local[2]", "-o", "lines")
        until((tmp_path / "state/archive/status.json").exists)
        until(lambda: terminal.status("archive").state == RUNNING and rows_out(terminal) > 0)

        code, _, errors = terminal.run("run", "archive.yaml")
        assert (code, errors) == (
            1,
            f"Error: the pipeline archive is already running, process {run.pid}, from archive.yaml: "
            "`odradek pipeline stop archive` stops it\n",
        )

        terminal.kill_driver("archive", run)
        assert terminal.status("archive").state == KILLED
        (tmp_path / "out/part-00000-00000000-0000-0000-0000-000000000000-c000.snappy.parquet").write_bytes(
            b"torn"
        )

        librdkafka.produce("orders", good[1500:] + bad[3:])
        run = terminal.start("run", "archive.yaml", "--master", "local[2]", "-o", "lines")
        until(lambda: terminal.status("archive").state == RUNNING and rows_out(terminal) > 0)
        cluster.kill()
        time.sleep(1)
        cluster.start()
        written = ends(cluster.bootstrap, "orders")
        for query in ("files", "dead_letters_orders"):
            until(lambda query=query: has_read(tmp_path / "archive.checkpoint" / query, written))
        code, out, errors = terminal.run("stop", "archive")
        assert (code, out) == (0, "archive has ended.\n"), errors
        out, errors = run.communicate()
        assert run.returncode == 0, errors
        assert out.startswith("archive ended: ")

        ids = sorted(pyarrow.parquet.read_table(tmp_path / "out")["id"].to_pylist())
        assert ids == list(range(3000))
        dead = [received.record.value for received in librdkafka.consume("orders-dead", len(bad))]
        assert sorted(dead) == sorted(record.value for record in bad)


def test_what_cannot_run_is_one_sentence_before_spark_starts(terminal, tmp_path, bootstrap, monkeypatch):
    (tmp_path / "archive.yaml").write_text(
        PIPELINE.format(bootstrap=bootstrap).replace("topic: orders", "topic: ordres")
    )
    code, _, errors = terminal.run("run", "archive.yaml")
    assert code == 2
    assert errors.startswith("Error: archive.yaml:6: there is no topic 'ordres' at")

    terminal.environment["JAVA_HOME"] = "/nowhere"
    code, _, errors = terminal.run("run", "archive.yaml")
    assert (code, errors) == (
        1,
        "Error: JAVA_HOME is /nowhere, which has no bin/java: install Java 17, or correct it\n",
    )
    code, out, _ = terminal.run("list")
    assert (code, out) == (0, "")
    code, _, errors = terminal.run("status", "archive")
    assert (code, errors.startswith("Error: the pipeline archive has never been run here")) == (1, True)
