"""One command started twice: the second driver fences the first, which says so. Run by `make long`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from compat.clients.librdkafka import Librdkafka
from odradek.spark.transactions import hooks
from odradek.testing import Cluster
from spark.kills.hook_server import HookServer
from spark.kills.kill_run import TESTS, check_exactly_once, committed_values, produce
from spark.kills.one_query import FORMS, PROGRAM

pytestmark = pytest.mark.long

COUNT = 300
PATIENCE_S = 400


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", [hooks.BEFORE_END, hooks.BEFORE_PRODUCE])
def test_a_second_driver_fences_the_first_which_says_so(form: str, place: str, tmp_path: Path) -> None:
    """Wherever the first is in its second micro-batch: by the data source it has begun no transaction yet."""
    has_committed, is_held, is_over = threading.Event(), threading.Event(), threading.Event()

    def hold_the_second_micro_batch(point: str, _: int) -> None:
        if point == hooks.AFTER_END:
            has_committed.set()
        if point == place and has_committed.is_set() and not is_held.is_set():
            is_held.set()
            assert is_over.wait(PATIENCE_S)

    with Cluster(process=True) as cluster, HookServer(hold_the_second_micro_batch) as server:
        librdkafka = Librdkafka(cluster.bootstrap)
        for topic in ("source", "target"):
            librdkafka.create_topic(topic, partitions=2)
        produce(cluster.bootstrap, "source", 2, COUNT)
        arguments = [cluster.bootstrap, form, "source", "target", str(tmp_path / "checkpoint")]
        command = [sys.executable, str(PROGRAM), *arguments]

        def start(name: str, hook: str) -> subprocess.Popen[bytes]:
            python_path = os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", "")))
            own = {hooks.VARIABLE: hook, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": python_path}
            directory = tmp_path / name
            directory.mkdir()
            with (directory / "log").open("wb") as log:
                return subprocess.Popen(
                    command, env={**os.environ, **own}, cwd=directory, stdout=log, stderr=log
                )

        first = start("first", server.address)
        try:
            assert is_held.wait(PATIENCE_S)
            second = start("second", "")
            try:
                assert second.wait(PATIENCE_S) == 0
            finally:
                second.kill()
            is_over.set()
            assert first.wait(PATIENCE_S) == 0
        finally:
            first.kill()
        assert not server.errors
        said = (tmp_path / "first/log").read_text(errors="replace")
        assert "another driver has begun under the name 'target' and has fenced this one, which stops" in said
        assert "has fenced" not in (tmp_path / "second/log").read_text(errors="replace")
        check_exactly_once(committed_values(cluster.bootstrap, "target"), COUNT)
