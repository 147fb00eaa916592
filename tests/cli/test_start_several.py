"""`odradek start --brokers N` as a person meets it."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from client.eventually import eventually
from odradek import Admin

pytestmark = pytest.mark.slow

START = (sys.executable, "-m", "odradek.cli.main", "start")


@contextmanager
def running(data_dir: Path, count: int, *options: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    command = [*START, "--brokers", str(count), "--data-dir", str(data_dir), *options]
    command += ["--listener", "PLAINTEXT://127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline() for _ in range(count)]
        found = [re.fullmatch(r"ready: (127\.0\.0\.1:\d+)\n", line) for line in lines]
        assert all(found), (lines, process.poll())
        yield process, [match[1] for match in found if match is not None]
    finally:
        children = psutil.Process(process.pid).children() if process.poll() is None else []
        process.kill()
        process.communicate()
        psutil.wait_procs(children, timeout=60)


def test_each_says_when_it_is_ready_and_all_stop_cleanly_on_sigterm(tmp_path):
    with running(tmp_path, 3) as (process, addresses):
        with Admin(bootstrap_servers=addresses) as admin:
            assert [broker.broker_id for broker in admin.describe_cluster().brokers] == [0, 1, 2]
        assert len(psutil.Process(process.pid).children()) == 3
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert (tmp_path / "coordination.db").exists()
    for broker_id in range(3):
        assert (tmp_path / f"broker-{broker_id}" / ".kafka_cleanshutdown").exists()


def test_a_signal_to_all_processes_at_once_is_a_clean_shutdown(tmp_path):
    """As systemd and pkill send it; the parent passes it on too."""
    with running(tmp_path, 3) as (process, _):
        for one in (*psutil.Process(process.pid).children(), process):
            one.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    for broker_id in range(3):
        assert (tmp_path / f"broker-{broker_id}" / ".kafka_cleanshutdown").exists()


def test_a_broker_that_is_killed_is_not_restarted_and_the_others_continue(tmp_path):
    with running(tmp_path, 3) as (process, addresses):
        killed = psutil.Process(process.pid).children()[1]
        killed.kill()
        with Admin(bootstrap_servers=addresses) as admin:
            deadline = time.monotonic() + 30
            while len(admin.describe_cluster().brokers) != 2:
                assert time.monotonic() < deadline
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "broker 1 was killed by SIGKILL; it is not restarted, and the others continue" in errors


def test_one_that_cannot_start_stops_all(tmp_path):
    (tmp_path / "broker-1").write_text("not a directory")
    command = [*START, "--brokers", "2", "--data-dir", str(tmp_path), "--listener", "PLAINTEXT://127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "Error: broker 1" in done.stderr
    assert "the others are stopped" in done.stderr
    assert "Traceback" not in done.stderr


def test_brokers_end_with_the_command_even_by_kill_9(tmp_path):
    with running(tmp_path, 2) as (process, _):
        children = psutil.Process(process.pid).children()
        process.kill()
        gone, alive = psutil.wait_procs(children, timeout=60)
        assert (len(gone), alive) == (2, [])


def test_metrics_show_what_a_killed_broker_means(tmp_path):
    port = free_port()
    metrics = ("--set", f"odradek.metrics.listener=127.0.0.1:{port}")
    with running(tmp_path, 3, *metrics) as (process, addresses), Admin(bootstrap_servers=addresses) as admin:
        assert sum(value(port + one, "odradek_active_controller") for one in range(3)) == 1
        admin.create_topic("a", num_partitions=3, replication_factor=3, configs={"min.insync.replicas": "3"})
        eventually(lambda: value(port, "odradek_at_min_isr_partitions") == 1)

        psutil.Process(process.pid).children()[2].kill()

        alive = (port, port + 1)
        eventually(lambda: sum(value(one, "odradek_under_replicated_partitions") for one in alive) == 3)
        assert sum(value(one, "odradek_under_min_isr_partitions") for one in alive) == 3
        assert sum(value(one, "odradek_leader_elections_total") for one in alive) >= 1
        assert sum(value(one, "odradek_unclean_leader_elections_total") for one in alive) == 0
        assert sum(value(one, "odradek_offline_partitions") for one in alive) == 0
        # Each leader reports the follower that is alive; which broker leads a partition is drawn at random.
        pattern = r'odradek_replica_lag\{follower="[01]",partition="(\d)",topic="a"\} (\S+)'
        lags = re.findall(pattern, exposition(port) + exposition(port + 1))
        assert sorted(lags) == [("0", "0.0"), ("1", "0.0"), ("2", "0.0")]


def exposition(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        text: str = response.read().decode()
        return text


def value(port: int, name: str, **labels: str) -> float:
    text = exposition(port)
    for line in text.splitlines():
        found = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
        if found and dict(re.findall(r'(\w+)="([^"]*)"', found[1] or "")) == labels:
            return float(found[2])
    raise AssertionError(f"{name} {labels} is not in\n{text}")


def free_port() -> int:
    """A port with two free ones after it."""
    while True:
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            with socket.socket() as probe:
                if all(probe.connect_ex(("127.0.0.1", port + one)) for one in (1, 2)):
                    return port
