"""A ZooKeeper server for development, and a broker on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from kafka_peer import free_port
from odradek.testing import Cluster

ODRADEK = (sys.executable, "-m", "odradek.cli.main")


def run(*arguments, **environment):
    return subprocess.run(
        (*ODRADEK, "zookeeper", *arguments),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.java
@pytest.mark.slow
def test_a_server_is_started_used_and_stopped(tmp_path):
    port, place = free_port(), ("--data-dir", str(tmp_path / "zk"))
    started = run("start", *place, "--port", str(port))
    try:
        assert (started.returncode, started.stdout) == (0, f"ready: 127.0.0.1:{port}\n"), started.stderr
        again = run("start", *place, "--port", str(port))
        assert (again.returncode, "already runs" in again.stderr) == (1, True)
        other = run("start", "--data-dir", str(tmp_path / "other"), "--port", str(port))
        assert (other.returncode, "Address already in use" in other.stderr) == (1, True)
        with Cluster({"odradek.coordination": f"zookeeper://127.0.0.1:{port}/a", "broker.id": 7}) as cluster:
            listed = subprocess.run(
                (*ODRADEK, "cluster", "describe", "-b", cluster.bootstrap, "-o", "json"),
                capture_output=True,
                text=True,
                check=True,
            )
            assert '"id":7' in listed.stdout
    finally:
        stopped = run("stop", *place)
    assert stopped.returncode == 0
    assert run("stop", *place).returncode == 1


@pytest.mark.slow
def test_a_pid_of_another_program_is_left_alone(tmp_path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (tmp_path / "pid").write_text(f"{other.pid}\n")
        refused = run("stop", "--data-dir", str(tmp_path))
        assert (refused.returncode, "no server runs" in refused.stderr) == (1, True)
        assert other.poll() is None
        other.send_signal(signal.SIGTERM)


@pytest.mark.slow
def test_without_java_it_says_what_is_needed(tmp_path):
    (tmp_path / "zookeeper-3.9.4.jar").touch()
    refused = run("start", "--data-dir", str(tmp_path / "zk"), "--jars", str(tmp_path), PATH=str(tmp_path))
    assert (refused.returncode, "needs Java" in refused.stderr) == (1, True)
