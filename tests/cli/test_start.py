"""`odradek start` as a person meets it: ready, mistakes, a clean stop."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.coordination import paths
from odradek.coordination.embedded.store import SqliteStore

pytestmark = pytest.mark.slow  # each of them takes a second or more

START = (sys.executable, "-m", "odradek.cli.main", "start")
ANY_PORT = "PLAINTEXT://127.0.0.1:0"


@contextmanager
def running(data_dir: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = (*START, "--data-dir", str(data_dir), "--listener", ANY_PORT, *options)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        match = re.fullmatch(r"ready: (127\.0\.0\.1:\d+)\n", ready)
        assert match is not None, ready + (process.communicate()[1] if process.poll() is not None else "")
        yield process, match[1]
    finally:
        process.kill()
        process.communicate()


def refusal(*options: str) -> str:
    done = subprocess.run((*START, *options), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    return done.stderr


def test_it_says_when_it_is_ready_and_stops_cleanly_on_sigterm(tmp_path):
    with running(tmp_path) as (process, address):
        producer = Producer({"bootstrap.servers": address})
        producer.produce("orders", b"kept")
        assert producer.flush(20) == 0
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
        assert (process.returncode, errors) == (0, "")
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_it_stops_on_sigterm_while_it_waits_for_a_zookeeper_that_does_not_answer(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = f"zookeeper://127.0.0.1:{silent.getsockname()[1]}"
        patience = "zookeeper.connection.timeout.ms=600000"
        options = ("--data-dir", str(tmp_path), "--listener", ANY_PORT, "--coordination", store)
        process = subprocess.Popen((*START, *options, "--set", patience), stderr=subprocess.PIPE, text=True)
        try:
            connection, _ = silent.accept()
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
        connection.close()
    assert (process.returncode, "Traceback" in errors) == (0, False)


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path):
    with running(tmp_path) as (process, address):
        producer = Producer({"bootstrap.servers": address, "acks": "all"})
        for number in range(500):
            producer.produce("orders", b"%d" % number)
        assert producer.flush(20) == 0
        process.kill()
        process.wait()
    with running(tmp_path) as (_, address):
        settings = {"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False}
        consumer = Consumer(settings)
        consumer.assign([TopicPartition("orders", 0, 0)])
        values = [message.value() for message in consumer.consume(500, timeout=20)]
        consumer.close()
    assert values == [b"%d" % number for number in range(500)]


def test_a_second_broker_on_the_same_data_is_refused(tmp_path):
    with running(tmp_path):
        message = refusal("--data-dir", str(tmp_path), "--listener", ANY_PORT)
    assert "in use by another process" in message


def test_a_port_in_use_is_reported(tmp_path):
    with running(tmp_path / "one") as (_, address):
        message = refusal("--data-dir", str(tmp_path / "two"), "--listener", f"PLAINTEXT://{address}")
    assert "another process has that port" in message


def test_a_misspelt_setting_is_met_with_the_nearest_one(tmp_path):
    message = refusal("--data-dir", str(tmp_path), "--set", "log.retension.ms=5")
    assert "unknown setting log.retension.ms; did you mean log.retention.ms?" in message


def test_a_file_of_settings_is_read(tmp_path):
    (tmp_path / "server.properties").write_text("broker.id=7\nnum.partitions=3\n")
    with running(tmp_path / "data", str(tmp_path / "server.properties")) as (_, address):
        producer = Producer({"bootstrap.servers": address})
        producer.produce("orders", b"made by asking")
        assert producer.flush(20) == 0
        metadata = producer.list_topics("orders", timeout=20)
    assert list(metadata.brokers) == [7]
    assert len(metadata.topics["orders"].partitions) == 3


def test_a_broker_whose_id_was_taken_while_it_hung_stops_with_an_error(tmp_path):
    async def take_the_id() -> None:
        store = await SqliteStore.open(tmp_path / "store")
        gone = asyncio.Event()
        if await store.exists(paths.broker_id(0), lambda _: gone.set()) is not None:
            await asyncio.wait_for(gone.wait(), 20)
        await store.create(paths.broker_id(0), b"{}", ephemeral=True)
        process.send_signal(signal.SIGCONT)
        await asyncio.to_thread(process.wait, 30)
        await store.close()

    options = ("--coordination", f"sqlite:{tmp_path / 'store'}", "--set", "zookeeper.session.timeout.ms=1000")
    with running(tmp_path / "data", *options) as (process, _):
        process.send_signal(signal.SIGSTOP)
        asyncio.run(take_the_id())
        _, errors = process.communicate()

    assert process.returncode == 1
    assert "Error: broker id 0 is taken by a live broker" in errors
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
