"""The same pipeline files on local[2] and on a standalone cluster, a master and two workers as processes.

Seven JVMs: run by `make long`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from kafka_peer import free_port
from odradek.testing import Cluster
from spark.pipeline.conftest import EXAMPLES
from spark.pipeline.driver.test_transform_with_state import PIPELINE as TOTALS
from spark.pipeline.terminal import a_terminal, until

pytestmark = pytest.mark.long
LOCAL = {"SPARK_LOCAL_IP": "127.0.0.1"}


@contextmanager
def a_daemon(directory: Path, name: str, *arguments: str) -> Iterator[Path]:
    """One of Spark's daemons, with a log; it ends with the block."""
    import pyspark

    home = Path(pyspark.__file__).parent
    log = directory / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(home / "bin/spark-class"), *arguments],
            env={**os.environ, **LOCAL, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"},
            cwd=directory,
            stdout=output,
            stderr=output,
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[tuple[str, list[Path]]]:
    """The address of a master with two workers of one core, and the directories in which these work."""
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    works = [tmp_path / "work1", tmp_path / "work2"]
    package = "org.apache.spark.deploy"
    with ExitStack() as daemons:
        listening = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port())]
        log = daemons.enter_context(a_daemon(tmp_path, "master", f"{package}.master.Master", *listening))
        until(lambda: is_open(port))
        for work in works:
            own = ["--host", "127.0.0.1", "--webui-port", str(free_port()), "--work-dir", str(work)]
            size = ["--cores", "1", "--memory", "1g"]
            worker = (f"{package}.worker.Worker", *own, *size, master)
            daemons.enter_context(a_daemon(tmp_path, work.name, *worker))
        until(lambda: log.read_text().count("Registering worker") == 2)
        yield master, works


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_file_has_the_same_results_on_local_and_on_a_cluster(standalone, tmp_path):
    master, works = standalone
    orders = (EXAMPLES / "sample/orders.jsonl").read_bytes().splitlines()
    amounts = [b'{"customer": "c%d", "amount": %d}' % (number % 10, number) for number in range(500)]
    results = []
    with Cluster(process=True) as cluster:
        librdkafka = Librdkafka(cluster.bootstrap)
        for topic, values in (("orders", orders), ("amounts", amounts)):
            librdkafka.create_topic(topic, partitions=2)
            librdkafka.produce(topic, [Record(value) for value in values])
        for number, chosen in enumerate(("local[2]", master)):
            directory = tmp_path / f"pipelines{number}"
            shutil.copytree(EXAMPLES, directory)
            (directory / "totals.py").write_text(TOTALS.format(bootstrap=cluster.bootstrap, topic="amounts"))
            with a_terminal(directory, BROKERS=cluster.bootstrap, **LOCAL) as terminal:
                for file in ("archive.yaml", "totals.py"):
                    code, _, errors = terminal.run("run", file, "--available-now", "--master", chosen)
                    assert code == 0, errors
                assert terminal.status("archive").master == chosen
            results.append((rows(directory / "output/orders"), rows(directory / "out")))
    assert results[0] == results[1]
    assert [len(found) for found in results[1]] == [40, 10]
    # Each worker had an executor of each run.
    assert [len(list(work.glob("app-*/*/stderr"))) for work in works] == [2, 2]


def rows(directory: Path) -> list[dict[str, Any]]:
    return sorted(pyarrow.parquet.read_table(directory).to_pylist(), key=str)
