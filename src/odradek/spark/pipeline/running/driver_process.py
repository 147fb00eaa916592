"""The driver as a child process, in a session of its own: Ctrl-C at the terminal does not reach it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

_MODULE = "odradek.spark.pipeline.driver.main"


class DriverProcess:
    """One start of the driver. Whoever reads `events` owns it; any thread may call `stop` and `kill`."""

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        inherited: Sequence[int],
        output: int | None,
        is_local: bool,
    ) -> None:
        """`output`: the descriptor for rows of console sinks. A local driver needs no other address."""
        reading, writing = os.pipe()
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, "--events", str(writing), *arguments],
                stdin=subprocess.PIPE,
                stdout=errors if output is None else output,
                stderr=errors,
                pass_fds=(writing, *inherited),
                start_new_session=True,
                env={**os.environ, "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")}
                if is_local
                else None,
            )
        os.close(writing)
        self._events: IO[str] = os.fdopen(reading, encoding="utf-8")

    @property
    def pid(self) -> int:
        """The process id, which is the id of its process group too."""
        return self._process.pid

    def events(self) -> Iterator[Mapping[str, Any]]:
        """What the driver reports, until it ends."""
        with self._events:
            for line in self._events:
                if line.endswith("\n"):
                    yield json.loads(line)

    def wait(self) -> int:
        """The exit code; negative: the signal that killed it."""
        code = self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        return code

    def stop(self) -> None:
        """Let it end after the micro-batches that are running."""
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(b"stop\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # it has ended

    def kill(self) -> None:
        """End it and its JVM at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
