"""A cluster for a test: there at once, as configured, and gone without a trace."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.common.errors import ConfigError
from odradek.testing import Cluster, ClusterError

pytestmark = pytest.mark.slow  # each of them takes a second or more

KINDS = pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])


def produce(bootstrap: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce("orders", value)
    assert producer.flush(20) == 0


def consume(bootstrap: str, count: int) -> list[bytes]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition("orders", 0, 0)])
    values = [message.value() for message in consumer.consume(count, timeout=20)]
    consumer.close()
    return values


def traces() -> tuple[set[str], set[str], set[int]]:
    """What this process holds: open files (sockets and pipes included), threads, children."""
    descriptors = {f"{fd} {Path(f'/proc/self/fd/{fd}').readlink()}" for fd in open_descriptors()}
    threads = {thread.name for thread in threading.enumerate()}
    return descriptors, threads, {child.pid for child in psutil.Process().children()}


def open_descriptors() -> list[int]:
    return [fd for fd in map(int, os.listdir("/proc/self/fd")) if Path(f"/proc/self/fd/{fd}").is_symlink()]


@KINDS
def test_a_client_produces_and_consumes(process):
    with Cluster(process=process) as cluster:
        produce(cluster.bootstrap, b"one", b"two")
        assert consume(cluster.bootstrap, 2) == [b"one", b"two"]


def test_it_is_an_asynchronous_context_manager_too():
    async def scenario() -> None:
        async with Cluster() as cluster:
            address = cluster.bootstrap.split(":")
            _, writer = await asyncio.open_connection(*address)
            writer.close()
            await writer.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)

    asyncio.run(scenario())


@KINDS
def test_settings_come_by_kafkas_name_or_as_keywords(process):
    with Cluster(
        {"broker.id": 7}, process=process, num_partitions=3, auto_create_topics_enable=True
    ) as cluster:
        produce(cluster.bootstrap, b"one")
        metadata = Producer({"bootstrap.servers": cluster.bootstrap}).list_topics("orders", timeout=20)
    assert list(metadata.brokers) == [7]
    assert len(metadata.topics["orders"].partitions) == 3


@KINDS
def test_a_restart_keeps_data_and_port(process):
    with Cluster(process=process) as cluster:
        bootstrap, data_dir = cluster.bootstrap, cluster.data_dir
        produce(bootstrap, b"one")
        cluster.restart()
        assert (cluster.bootstrap, cluster.data_dir) == (bootstrap, data_dir)
        produce(bootstrap, b"two")
        assert consume(bootstrap, 2) == [b"one", b"two"]


def test_a_killed_broker_comes_back_with_what_it_acknowledged():
    with Cluster(process=True) as cluster:
        produce(cluster.bootstrap, b"one")
        cluster.kill()
        assert is_refused(cluster.bootstrap)
        cluster.restart()
        assert consume(cluster.bootstrap, 1) == [b"one"]


def test_a_broker_starts_where_a_thousand_descriptors_are_open():
    with contextlib.ExitStack() as files:
        for _ in range(1100):
            files.enter_context(open(os.devnull, "rb"))
        with Cluster(process=True) as cluster:
            produce(cluster.bootstrap, b"x")


@KINDS
def test_nothing_is_left_even_when_the_test_fails(process):
    # The first one may leave what the interpreter keeps anyway, such as the pipe that wakes it for signals.
    fail_in_a_cluster(process)
    before = traces()
    data_dir = fail_in_a_cluster(process)
    assert not data_dir.exists()
    assert traces() == before


def fail_in_a_cluster(process: bool) -> Path:
    cluster = Cluster(process=process)
    try:
        with cluster:
            produce(cluster.bootstrap, b"one")
            data_dir = cluster.data_dir
            raise RuntimeError("the test fails")
    except RuntimeError:
        return data_dir


def test_a_directory_of_the_test_stays(tmp_path):
    with Cluster(data_dir=tmp_path / "data") as cluster:
        assert cluster.data_dir == tmp_path / "data"
        produce(cluster.bootstrap, b"one")
    assert (tmp_path / "data" / "orders-0").is_dir()


@KINDS
def test_a_misspelt_setting_is_reported_and_leaves_nothing(process):
    before = traces()
    with (
        pytest.raises((ConfigError, ClusterError), match=r"did you mean num\.partitions\?"),
        Cluster(process=process, num_partition=3),
    ):
        pytest.fail("started")
    assert traces() == before


def test_a_port_in_use_is_reported():
    with Cluster() as first:
        listeners = f"PLAINTEXT://{first.bootstrap}"
        with pytest.raises(Exception, match="another process has that port"), Cluster(listeners=listeners):
            pytest.fail("started")


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ConfigError, match="brokers=0: a cluster has at least one"):
        Cluster(brokers=0)
    with pytest.raises(ClusterError, match="there is no broker 1; the ids are 0 to 0"):
        Cluster().stop(1)
    with pytest.raises(ClusterError, match="not started"):
        _ = Cluster().bootstrap
    with Cluster() as in_process:
        with pytest.raises(ClusterError, match="process=True"):
            in_process.kill()
        with pytest.raises(ClusterError, match="process=True"):
            in_process.pause(0)
        with pytest.raises(ClusterError, match="runs; stop or kill it first"):
            in_process.wipe(0)
        with pytest.raises(ClusterError, match="runs already"):
            in_process.start()


def test_a_broker_that_ended_by_itself_fails_the_test():
    cluster = Cluster(process=True)
    cluster.start()
    (broker,) = psutil.Process().children()
    broker.send_signal(signal.SIGKILL)
    with pytest.raises(ClusterError, match="ended with exit code -9"):
        cluster.close()


def test_a_broker_goes_with_the_process_that_started_it(tmp_path):
    code = (
        "import os, signal, sys; from odradek.testing import Cluster;"
        "c = Cluster(process=True, data_dir=sys.argv[1]); c.start(); print(c.bootstrap, flush=True);"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    wait_for(tmp_path / ".kafka_cleanshutdown")
    assert is_refused(done.stdout.decode().strip())


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.01)


def is_refused(address: str) -> bool:
    host, port = address.split(":")
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == errno.ECONNREFUSED
