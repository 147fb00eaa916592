"""Files of operations: one for each worker, written as the operations end, read together afterwards."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from odradek.testing.history.operations import History, Operation, decode, encode

SUFFIX = ".history"


def now_ms() -> int:
    """The clock of histories: the same in all processes of this machine."""
    return time.monotonic_ns() // 1_000_000


class Recorder:
    """Appends operations to a file. Threads may share one.

    Each line reaches the kernel before `record` returns, so that it outlives the process: a killed worker
    leaves at most one torn line.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._file = (directory / (name + SUFFIX)).open("ab", buffering=0)
        self._lock = threading.Lock()

    def record(self, *operations: Operation) -> None:
        """Append these, in this order."""
        lines = "".join(encode(operation) + "\n" for operation in operations)
        with self._lock:
            self._file.write(lines.encode())

    def close(self) -> None:
        """Nothing is recorded after this."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def load(directory: Path) -> History:
    """The history of all files in a directory; a torn last line of a file is ignored."""
    history = History()
    for path in sorted(directory.glob("*" + SUFFIX)):
        content = path.read_text()
        for line in content[: content.rfind("\n") + 1].splitlines():
            history.add(decode(line))
    return history
