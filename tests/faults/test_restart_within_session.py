"""A broker that was killed is started again while the store still has its old registration."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_peer import PEERS, free_port
from odradek.log.directories.log_directory import recorded_properties
from odradek.testing.broker_process import BrokerProcess
from odradek.testing.errors import ClusterError

SESSION_TIMEOUT_S = 6
WAITING = "still registered"


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory, port = tmp_path_factory.mktemp("zookeeper"), free_port()
    subprocess.run([PEERS / "start-zookeeper", directory, str(port)], check=True, capture_output=True)
    yield f"zookeeper://localhost:{port}"
    subprocess.run([PEERS / "stop", directory], check=True)


@contextmanager
def broker(directory: Path, store: str, **settings: str) -> Iterator[BrokerProcess]:
    """A broker that runs until the end of the block, unless the test ends it; its stderr in `DIR/stderr`."""
    directory.mkdir(exist_ok=True)
    process = BrokerProcess(
        {
            "log.dirs": str(directory / "data"),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "odradek.coordination": store,
            "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_S * 1000),
            **{key.replace("_", "."): text for key, text in settings.items()},
        },
        directory / "stderr",
    )
    process.begin()
    process.start()
    try:
        yield process
    finally:
        process.stop()


@pytest.mark.java
def test_on_zookeeper_it_waits_for_its_own_session_and_keeps_its_generated_id(
    tmp_path: Path, zookeeper: str
) -> None:
    with broker(tmp_path, f"{zookeeper}/own") as first:
        first.kill()
    recorded = recorded_properties([str(tmp_path / "data")])
    assert recorded is not None
    with broker(tmp_path, f"{zookeeper}/own"):
        said = (tmp_path / "stderr").read_text()
        assert f"broker id {recorded.broker_id} is {WAITING}" in said
        assert recorded_properties([str(tmp_path / "data")]) == recorded
        assert recorded.broker_id == 1001


@pytest.mark.java
def test_on_zookeeper_the_id_of_a_live_broker_is_refused_after_its_session_time_out(
    tmp_path: Path, zookeeper: str
) -> None:
    with broker(tmp_path / "first", f"{zookeeper}/other", broker_id="3"):
        began = time.monotonic()
        with (
            pytest.raises(ClusterError, match="broker id 3 is taken by a live broker"),
            broker(tmp_path / "second", f"{zookeeper}/other", broker_id="3"),
        ):
            pass
        assert time.monotonic() - began > SESSION_TIMEOUT_S


@pytest.mark.slow
def test_on_the_embedded_store_there_is_nothing_to_wait_for(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/store"
    with broker(tmp_path, store) as first:
        first.kill()
    with broker(tmp_path, store):
        assert WAITING not in (tmp_path / "stderr").read_text()
