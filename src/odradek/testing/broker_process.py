"""A broker in a process of its own: `odradek start`, stopped with the process that started it.

    python -m odradek.testing.broker_process start ...     is the command line, until stdin ends

The starter holds the other end of stdin: when it dies, its broker stops, too.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from odradek.testing.errors import ClusterError

if TYPE_CHECKING:
    from odradek.broker.server import BrokerServer

PATIENCE_SECONDS = 60
READY = "ready: "

Found = TypeVar("Found")


class BrokerProcess:
    """One run of a broker. `log_path` gets its stderr."""

    def __init__(self, settings: Mapping[str, str], log_path: Path) -> None:
        self._command = [sys.executable, "-m", __name__, "start"]
        for key, text in settings.items():
            self._command += ["--set", f"{key}={text}"]
        self._log_path = log_path
        self._process: subprocess.Popen[str] | None = None
        self._was_killed = False

    @property
    def process(self) -> subprocess.Popen[str]:
        """The process; only after `start`."""
        assert self._process is not None, "not started"
        return self._process

    def begin(self) -> None:
        """Start without waiting."""
        with open(self._log_path, "ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )

    def start(self) -> list[str]:
        """The addresses of its listeners, once clients are served; `begin` comes first."""
        stdout = self.process.stdout
        assert stdout is not None
        said = ""
        waiting = select.poll()  # select() cannot wait for descriptors above 1,023
        waiting.register(stdout, select.POLLIN)
        if waiting.poll(1000 * PATIENCE_SECONDS):
            said = stdout.readline().strip()
        if not said.startswith(READY):
            self._end(signal.SIGKILL)
            raise ClusterError(f"the broker did not start: {said}{self._stderr()}")
        return said.removeprefix(READY).split(",")

    def stop(self) -> None:
        """Stop in order; ClusterError if the broker had failed, unless it was killed on purpose."""
        exit_code = self._end(signal.SIGTERM)
        if exit_code != 0 and not self._was_killed:
            raise ClusterError(f"the broker ended with exit code {exit_code}: {self._stderr()}")

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self._was_killed = True
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Stop the process where it is, with SIGSTOP."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        self.process.send_signal(signal.SIGCONT)

    def look(self, function: Callable[[BrokerServer], Found]) -> Found:
        """Not possible in another process."""
        raise ClusterError("only a broker in this process can be looked into: Cluster(process=False)")

    def _end(self, number: signal.Signals) -> int:
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        process.send_signal(number)
        try:
            return process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            process.stdin.close()
            process.stdout.close()

    def _stderr(self) -> str:
        return self._log_path.read_text(errors="replace").strip() or "it said nothing on stderr"


def _end_with_the_starter() -> None:
    # Not sys.stdin: its lock, held by this thread, would break the end of the interpreter.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _main() -> None:
    from odradek.cli.main import main  # noqa: PLC0415

    threading.Thread(target=_end_with_the_starter, daemon=True).start()
    main()


if __name__ == "__main__":
    _main()
