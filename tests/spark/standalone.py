"""A standalone cluster of Spark: a master and two workers as processes."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kafka_peer import free_port
from spark.pipeline.terminal import until

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


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[tuple[str, list[Path]]]:
    """The address of a master with two workers of one core, and the directories in which these work."""
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    works = [directory / "work1", directory / "work2"]
    package = "org.apache.spark.deploy"
    with ExitStack() as daemons:
        listening = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port())]
        log = daemons.enter_context(a_daemon(directory, "master", f"{package}.master.Master", *listening))
        until(lambda: is_open(port))
        for work in works:
            own = ["--host", "127.0.0.1", "--webui-port", str(free_port()), "--work-dir", str(work)]
            size = ["--cores", "1", "--memory", "1g"]
            worker = (f"{package}.worker.Worker", *own, *size, master)
            daemons.enter_context(a_daemon(directory, work.name, *worker))
        until(lambda: log.read_text().count("Registering worker") == 2)
        yield master, works


def is_open(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
