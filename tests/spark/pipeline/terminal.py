"""`odradek pipeline` as processes, and what is read from outside while they run: status, checkpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from odradek import Admin
from odradek.client.admin.offsets import OffsetSpec
from odradek.common.ids import TopicPartition
from odradek.spark.pipeline.running.state_directory import RunStatus, StateDirectory

PATIENCE_S = 200


class Terminal:
    """Runs commands with a state directory of their own."""

    def __init__(self, directory: Path, module: str = "odradek.cli.main", **environment: str) -> None:
        self.directory = directory
        self.module = module
        own = {"ODRADEK_PIPELINE_STATE": str(directory / "state")}
        self.environment: dict[str, str] = {**os.environ, **own, **environment}
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", self.module, "pipeline", *arguments]
        process = subprocess.Popen(
            command,
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, errors = process.communicate(timeout=PATIENCE_S)
        return process.returncode, out, errors

    def status(self, name: str) -> RunStatus:
        return StateDirectory(name, self.directory / "state").read()

    def kill_driver(self, name: str, run: subprocess.Popen[str]) -> None:
        """kill -9 of the command; its driver and JVM end because it is gone."""
        jvm = self.status(name).jvm_pid
        run.kill()
        run.communicate()
        until(lambda: not Path(f"/proc/{jvm}").exists())

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()  # its driver ends when its standard input closes
                process.communicate()


@contextmanager
def a_terminal(directory: Path, module: str = "odradek.cli.main", **environment: str) -> Iterator[Terminal]:
    terminal = Terminal(directory, module, **environment)
    try:
        yield terminal
    finally:
        terminal.close()


def until(is_true: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + patience_s
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def batches(checkpoint: Path, kind: str) -> list[int]:
    """The micro-batches of a query in its checkpoint; kind: offsets, of those begun, or commits."""
    directory = checkpoint / kind
    return sorted(int(one.name) for one in directory.glob("*") if one.name.isdigit())


def committed(checkpoint: Path) -> dict[str, int]:
    """The offsets up to which a query is done, by partition, from the checkpoint of Spark."""
    done = batches(checkpoint, "commits")
    found: dict[str, int] = {}
    if done:
        for line in (checkpoint / "offsets" / str(done[-1])).read_text().splitlines()[2:]:
            offsets: Any = json.loads(line) if line.startswith("{") else {}
            for topic, partitions in offsets.items():
                if isinstance(partitions, dict):
                    found |= {f"{topic}-{number}": offset for number, offset in partitions.items()}
    return found


def ends(bootstrap: str, *topics: str) -> dict[str, int]:
    """The end of each partition that has records."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        described = admin.describe_topics(topics)
        places = [
            TopicPartition(topic, one.partition) for topic in topics for one in described[topic].partitions
        ]
        listed = admin.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
    return {str(place): found.offset for place, found in listed.items() if found.offset}


def has_read(checkpoint: Path, until_offsets: dict[str, int]) -> bool:
    """Whether a query is done with these offsets."""
    done = committed(checkpoint)
    return all(done.get(place, 0) >= offset for place, offset in until_offsets.items())
