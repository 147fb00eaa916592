"""Java's VerifiableProducer and VerifiableConsumer: run as processes, their output turned into a history."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compat.java_tools import NEWEST, QUICK_JVM, RUN_CLASS
from faults.cluster.brokers import wait_for
from faults.cluster.values import decode_value
from faults.cluster.worker import Work
from odradek.testing.history.operations import Commit, Operation, Outcome, Poll, Read, Send
from odradek.testing.history.recorder import Recorder

START_SECONDS = 90
RETRYING = {"retries": "2147483647", "enable.idempotence": "true", "metadata.max.age.ms": "5000"}
JVM = QUICK_JVM.replace("256M", "160M")


class _JavaWorker:
    """A tool that prints one JSON object an event."""

    tool: str

    def __init__(self, work: Work, directory: Path) -> None:
        self.work = work
        self.failure = ""
        self._directory = directory
        self._output = directory / f"{work.name}.out"
        self._process: subprocess.Popen[bytes] | None = None
        self._wall_ahead_ms = (time.time_ns() - time.monotonic_ns()) // 1_000_000

    def start(self) -> None:
        with self._output.open("wb") as out, (self._directory / f"{self.work.name}.err").open("wb") as err:
            self._process = subprocess.Popen(
                [str(RUN_CLASS), self.tool, "--bootstrap-server", self.work.bootstrap, *self.options()],
                stdout=out,
                stderr=err,
                env=os.environ | {"KAFKA_VERSION": NEWEST, "KAFKA_HEAP_OPTS": JVM},
            )
        wait_for(lambda: self._output.stat().st_size > 0, f"{self.tool} has started", START_SECONDS)

    def stop(self, seconds: float) -> None:
        """Ask it to end, wait, and record what it printed."""
        assert self._process is not None
        if self._process.poll() is not None:
            self.failure = f"ended by itself with {self._process.returncode}"
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.failure = f"did not end within {seconds} s"
            self._process.kill()
            self._process.wait()
        with Recorder(self._directory, self.work.name) as recorder:
            recorder.record(*self.operations(self._events()))

    def _events(self) -> Iterator[dict[str, Any]]:
        for line in self._output.read_text(errors="replace").splitlines():
            if line.startswith("{") and line.endswith("}"):
                event = json.loads(line)
                event["at_ms"] = int(event["timestamp"]) - self._wall_ahead_ms
                yield event

    def options(self) -> list[str]:
        raise NotImplementedError

    def operations(self, events: Iterator[dict[str, Any]]) -> Iterator[Operation]:
        raise NotImplementedError


class VerifiableProducer(_JavaWorker):
    """acks=all and idempotence, as Java's producer is by default; the tool alone would not retry."""

    tool = "VerifiableProducer"

    def __init__(self, work: Work, directory: Path, prefix: int = 7) -> None:
        super().__init__(work, directory)
        self._prefix = prefix

    def options(self) -> list[str]:
        work = self.work
        config = self._directory / f"{work.name}.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in RETRYING.items()))
        return [
            "--topic", work.topic, "--throughput", str(work.rate), "--value-prefix", str(self._prefix),
            "--command-config", str(config),
        ]  # fmt: skip

    def operations(self, events: Iterator[dict[str, Any]]) -> Iterator[Operation]:
        for event in events:
            kind = event["name"]
            if kind not in ("producer_send_success", "producer_send_error"):
                continue
            succeeded = kind == "producer_send_success"
            yield Send(
                self.work.name,
                event["at_ms"],
                event["topic"],
                event["partition"] if succeeded else -1,
                int(event["value"].partition(".")[2]),
                event["value"],
                Outcome.ACKNOWLEDGED if succeeded else Outcome.UNKNOWN,
                event["offset"] if succeeded else -1,
            )


class VerifiableConsumer(_JavaWorker):
    """A member of a classic group, which commits after every poll."""

    tool = "VerifiableConsumer"

    def options(self) -> list[str]:
        work = self.work
        return ["--topic", work.topic, "--group-id", work.group, "--verbose", "--session-timeout", "30000"]

    def operations(self, events: Iterator[dict[str, Any]]) -> Iterator[Operation]:
        session, reads, polled_ms = 0, [], 0
        for event in events:
            match event["name"]:
                case "partitions_assigned" | "partitions_revoked":
                    session += 1
                case "record_data":
                    value = event["value"]
                    reads.append(
                        Read(
                            event["topic"], event["partition"], event["offset"], decode_value(value.encode())
                        )
                    )
                case "records_consumed":
                    polled_ms = event["at_ms"]
                case "offsets_committed":
                    yield from self._commits(event, polled_ms)
            if reads and event["name"] != "record_data":
                yield Poll(self.work.name, event["at_ms"], session, tuple(reads), self.work.group)
                reads = []

    def _commits(self, event: dict[str, Any], began_ms: int) -> Iterator[Operation]:
        outcome = Outcome.ACKNOWLEDGED if event["success"] else Outcome.UNKNOWN
        for row in event.get("offsets", []):
            yield Commit(
                self.work.name, began_ms, event["at_ms"], self.work.group, row["topic"], row["partition"],
                row["offset"], outcome,
            )  # fmt: skip
