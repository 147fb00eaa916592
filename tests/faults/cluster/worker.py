"""One client that works until stopped, and records what it did."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odradek.testing.history.operations import Operation
from odradek.testing.history.recorder import Recorder

QUIET_SECONDS = 3.0
"""A reader that got nothing for that long after its stop is at the end."""


@dataclass(frozen=True)
class Work:
    """What a worker is to do."""

    kind: str
    name: str
    bootstrap: str
    topic: str
    partitions: int
    group: str = ""
    rate: int = 100
    """Records a second."""
    size: int = 100


class Worker(ABC):
    """A thread. What fails in it is kept in `failure`."""

    def __init__(self, work: Work, directory: Path) -> None:
        self.work = work
        self.failure = ""
        self.stopping = threading.Event()
        self._recorder = Recorder(directory, work.name)
        self._thread = threading.Thread(target=self._run_and_remember, name=work.name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Finish what is under way and end."""
        self.stopping.set()
        self._thread.join(seconds)
        if self._thread.is_alive():
            self.failure = f"did not end within {seconds} s"
        else:
            self._recorder.close()

    def record(self, *operations: Operation) -> None:
        self._recorder.record(*operations)

    def _run_and_remember(self) -> None:
        try:
            self.run()
        except BaseException as error:
            self.failure = f"{type(error).__name__}: {error}"

    @abstractmethod
    def run(self) -> None:
        """Work until `stopping` is set."""


class _Silent:
    """librdkafka reports every lost connection; here they are the point."""

    def log(self, *_: object) -> None:
        return None


SILENT: Any = _Silent()
