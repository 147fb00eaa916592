"""Stops and starts by the command line: under load, in the middle of a start, with mistaken settings."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path
from random import Random

import pytest

from broker.wire import WireClient, a_batch, a_produce, a_topic, the_row
from faults.broker_process import START, BrokerProcess, wait_until
from faults.loads import IdempotentLoad, PlainLoad, read_back
from odradek.log.offline.verify.directory import verify
from odradek.log.offline.verify.finding import LogFinding
from odradek.protocol.api_key import ApiKey

pytestmark = pytest.mark.slow  # many processes

CLEAN_MARK = ".kafka_cleanshutdown"
ANY_PORT = "PLAINTEXT://127.0.0.1:0"


def test_a_stop_under_load_is_clean_and_its_clients_continue_at_the_next_start(tmp_path):
    with BrokerProcess(tmp_path) as broker:
        with WireClient(broker.address) as client:
            for topic in (a_topic("idempotent"), a_topic("plain")):
                client.ask(ApiKey.CREATE_TOPICS, 7, topic)
        loads = [IdempotentLoad(broker.address, "idempotent"), PlainLoad(broker.address, "plain")]
        for load in loads:
            load.start()
        for _ in range(3):
            before = [load.count for load in loads]
            wait_until(lambda: all(map(_has_grown, loads, before)), "every producer is served")  # noqa: B023
            assert broker.terminate() == 0
            assert (broker.data / CLEAN_MARK).exists()
            broker.start()
            assert not (broker.data / CLEAN_MARK).exists()
        for load in loads:
            load.stop()
        idempotent, plain = loads
        found = read_back(broker.address, "idempotent")
        assert found == idempotent.acknowledged
        assert [value for _, value in found[0]] == idempotent.given[0]
        assert set(plain.acknowledged[0]) <= set(read_back(broker.address, "plain")[0])
        assert broker.terminate() == 0
    problems = re.findall(r"(?:WARNING|ERROR|CRITICAL) .*", broker.log())
    assert problems == [], "a clean stop leaves nothing to complain of, and nothing to recover"
    assert findings(broker.data) == []


def _has_grown(load, count: int) -> bool:
    return load.count > count + 10 or load.failure is not None


def test_a_stop_in_the_middle_of_a_start_does_no_harm(tmp_path):
    with BrokerProcess(tmp_path) as broker, WireClient(broker.address) as client:
        client.ask(ApiKey.CREATE_TOPICS, 7, a_topic("orders", 20))
        for partition in range(20):
            row = the_row(client.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"kept"), "orders", partition)))
            assert row.error_code == 0
    random = Random(5)
    for _ in range(7):
        broker.launch()
        time.sleep(random.uniform(0.0, 0.8))
        # Before Python has come as far as our handler, a signal ends the process as any other.
        assert broker.terminate() in (0, -signal.SIGTERM)
    with broker:
        found = read_back(broker.address, "orders", 20)
        assert {partition: [value for _, value in rows] for partition, rows in found.items()} == {
            partition: [b"kept"] for partition in range(20)
        }
        assert broker.terminate() == 0
    assert "Traceback" not in broker.log()


def test_a_second_signal_ends_a_stop_that_takes_too_long(tmp_path):
    unreachable = ("odradek.coordination=zookeeper://127.0.0.1:1",)
    broker = BrokerProcess(tmp_path, *unreachable)
    broker.launch()
    assert broker.process is not None
    try:
        wait_until(lambda: "Connection" in broker.log(), "it looks for its store")
        deadline = time.monotonic() + 20
        while broker.is_running:
            assert time.monotonic() < deadline, "it does not end"
            broker.process.send_signal(signal.SIGTERM)
            time.sleep(0.05)
        assert broker.process.returncode in (0, -signal.SIGTERM)
        assert not broker.is_ready
    finally:
        broker.end()


def refusal(*arguments: str) -> str:
    """What a start says that cannot be; it ends at once and without a traceback."""
    done = subprocess.run((*START, *arguments), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "ready:" not in done.stdout
    return done.stderr


def refused_file(tmp_path: Path, content: bytes) -> str:
    (tmp_path / "server.properties").write_bytes(content)
    file = str(tmp_path / "server.properties")
    return refusal("--data-dir", str(tmp_path / "data"), "--listener", ANY_PORT, file)


@pytest.mark.parametrize(
    ("content", "reported"),
    [
        (b"num.partitons=3\n", "did you mean num.partitions?"),
        (b"a=1\nnum.partitions=many\n", "num.partitions"),
        (b"num.partitions=\\u12\n", "line 1"),
        (b"num.partitions=0\n", "at least 1"),
        (b"\x00\x01\x02\xff\xfe", "unknown setting"),
        (b"log.segment.bytes=1\n", "at least 1048576"),
    ],
)
def test_a_broken_file_of_settings_is_reported_by_its_line(tmp_path, content, reported):
    message = refused_file(tmp_path, content)
    assert reported in message
    assert "server.properties" in message


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("--listener", "PLAINTEXT://127.0.0.1:99999"), "a port is at most 65535"),
        (("--listener", "FOO://127.0.0.1:0"), "no protocol for FOO"),
        (("--listener", "nonsense"), "must be NAME://host:port"),
        (("--listener", ""), "must name at least one listener (listeners: --listener)"),
        (("--data-dir", ""), "log.dirs is empty: name a directory, or leave the setting out (log.dirs: --"),
        (
            ("--set", "log.dirs="),
            "log.dirs is empty: name a directory, or leave the setting out (log.dirs: --",
        ),
        (("--listener", "PLAINTEXT://203.0.113.7:0"), "without authentication"),
        (("--coordination", "foo:bar"), "sqlite:PATH or zookeeper://"),
        (("--set", "num.partitions"), "must be key=value"),
        (("--broker-id", "-5"), "broker.id=-5: must be at least 0 (broker.id: --broker-id)"),
        (("--data-dri", "x"), "Did you mean '--data-dir'?"),
        (("no-such-file.properties",), "does not exist"),
    ],
)
def test_a_mistake_in_the_command_is_reported_in_a_sentence(tmp_path, arguments, reported):
    assert reported in refusal("--data-dir", str(tmp_path / "data"), *arguments)


@pytest.mark.parametrize(
    ("meta_properties", "reported"),
    [
        ("version=1\nnode.id=0\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\n", "belongs to cluster"),
        ("version=1\nnode.id=7\ncluster.id={cluster_id}\n", "belongs to broker 7"),
        ("garbage\n", "line 1 is not of the form key=value"),
        ("version=9\nnode.id=0\ncluster.id=x\n", "version 9 is unknown"),
    ],
)
def test_a_directory_that_is_not_ours_is_left_alone(tmp_path, meta_properties, reported):
    with BrokerProcess(tmp_path) as broker:
        assert broker.terminate() == 0
    (cluster_id,) = re.findall("cluster.id=(.*)", (broker.data / "meta.properties").read_text())
    (broker.data / "meta.properties").write_text(meta_properties.format(cluster_id=cluster_id))
    before = {path.name: path.read_bytes() for path in broker.data.iterdir() if path.suffix == ""}

    assert reported in refusal("--data-dir", str(broker.data), "--listener", ANY_PORT)

    after = {path.name: path.read_bytes() for path in broker.data.iterdir() if path.suffix == ""}
    assert after == before


def test_data_cannot_lie_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("mine")
    for place, reported in (
        (str(tmp_path / "file"), "is a file, not a directory; move it away, or name another"),
        (str(tmp_path / "file" / "below"), "is a file, not a directory; move it away, or name another"),
        ("/sys/odradek", "name another directory in log.dirs (--data-dir)"),
    ):
        message = refusal("--data-dir", place, "--listener", ANY_PORT)
        assert place in message
        assert reported in message
    assert (tmp_path / "file").read_text() == "mine"


def test_a_second_broker_of_the_same_id_in_one_store_is_refused(tmp_path):
    with BrokerProcess(tmp_path) as broker:
        store = f"sqlite:{broker.data}/coordination.db"
        other = str(tmp_path / "other")
        message = refusal(
            "--data-dir", other, "--listener", ANY_PORT, "--coordination", store, "--broker-id", "0"
        )
        assert "broker" in message
        assert broker.is_running


def findings(path: Path) -> list[LogFinding]:
    found: list[LogFinding] = []
    verify(str(path), found.append)
    return found
