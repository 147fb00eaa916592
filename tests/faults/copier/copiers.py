"""Kafka's TransactionalMessageCopier as processes, killed and started again until each has finished."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from compat.java_tools import NEWEST, QUICK_JVM, RUN_CLASS, WITH_ZOOKEEPER

INPUT, OUTPUT = "input", "output"
TRANSACTION_TIMEOUT_MS = 20_000
PROGRESS = re.compile(rb'"totalProcessed":[1-9]')


@dataclass
class Copier:
    """Copies one partition of the input topic to the same partition of the output topic, exactly once.

    A new process goes on where the committed offset of its group says. Odd ones are of Kafka 3.9 (v1), even
    ones of Kafka 4 (v2); each aborts some of its transactions by itself.
    """

    number: int
    bootstrap: str
    directory: Path
    transaction_size: int
    killed: int = 0
    failed: int = 0
    _log_start: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def is_finished(self) -> bool:
        """Whether it has ended by itself, with everything copied."""
        return self._process is not None and self._process.poll() == 0

    @property
    def has_progressed(self) -> bool:
        """Whether its present process has copied something; only then it is killed, or it would never end."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return PROGRESS.search(log.read()) is not None

    @property
    def log(self) -> Path:
        return self.directory / f"copier-{self.number}.log"

    def start(self) -> None:
        options = {
            "broker-list": self.bootstrap,
            "input-topic": INPUT,
            "input-partition": self.number,
            "output-topic": OUTPUT,
            "consumer-group": f"copier-{self.number}",
            "transactional-id": f"copier-{self.number}",
            "transaction-size": self.transaction_size,
            "transaction-timeout": TRANSACTION_TIMEOUT_MS,
        }
        arguments = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        version = WITH_ZOOKEEPER if self.number % 2 else NEWEST
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                [str(RUN_CLASS), "TransactionalMessageCopier", *arguments, "--enable-random-aborts"],
                stdout=log,
                stderr=log,
                env=os.environ | {"KAFKA_VERSION": version, "KAFKA_HEAP_OPTS": QUICK_JVM},
            )

    def start_again_if_failed(self) -> None:
        """The tool ends with 1 after an error from which it cannot go on, such as a time-out."""
        if not self.is_running and not self.is_finished:
            self.failed += 1
            self.start()

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.killed += 1
