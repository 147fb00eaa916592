"""Several brokers, each in a process of its own, forked by a process that has imported them.

That process is broker_starter.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.testing.errors import ClusterError

if TYPE_CHECKING:
    from odradek.broker.server import BrokerServer

PATIENCE_SECONDS = 60

Found = TypeVar("Found")


class BrokerStarter:
    """The process that forks brokers, and what it reports. One thread, the test's, calls the methods."""

    def __init__(self, log_path: Path) -> None:
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "odradek.testing.broker_starter"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._log_path = log_path
        self._changed = threading.Condition()
        self._starting: dict[int, ForkedBroker] = {}
        self._by_pid: dict[int, ForkedBroker] = {}
        self._is_gone = False
        self._reader = threading.Thread(target=self._read, name="odradek-brokers", daemon=True)
        self._reader.start()

    def begin(self, broker: ForkedBroker, settings: Mapping[str, str], log_path: Path) -> None:
        """Have a broker started; returns at once."""
        self._starting[broker.broker_id] = broker
        command = {"broker": broker.broker_id, "settings": dict(settings), "log": str(log_path)}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ClusterError(f"the starter of the brokers has exited: {self._log()}") from None

    def wait(self, is_so: Callable[[], bool], problem: str) -> None:
        """Return when it is so; ClusterError after a minute, or when the starter has exited."""
        with self._changed:
            self._changed.wait_for(lambda: is_so() or self._is_gone, PATIENCE_SECONDS)
            if not is_so():
                raise ClusterError(f"{problem}: {self._log()}")

    def close(self) -> None:
        """Stop all brokers that run, and the starter."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            for pid, broker in self._by_pid.items():
                if broker.exit_code is None:
                    os.kill(pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._note(json.loads(line))
                self._changed.notify_all()
        with self._changed:
            self._is_gone = True
            self._changed.notify_all()

    def _note(self, event: dict[str, Any]) -> None:
        if "broker" not in event:
            self._by_pid[event["pid"]].exit_code = event["exit"]
            return
        broker = self._starting[event["broker"]]
        if "pid" in event:
            broker.pid = event["pid"]
            self._by_pid[event["pid"]] = broker
        elif "ready" in event:
            broker.addresses = event["ready"]
        else:
            broker.error, broker.exit_code = event["error"], 1

    def _log(self) -> str:
        return self._log_path.read_text(errors="replace").strip() or "it said nothing on stderr"


class ForkedBroker:
    """One run of one broker. `log_path` gets its stderr."""

    def __init__(
        self, starter: BrokerStarter, broker_id: int, settings: Mapping[str, str], log_path: Path
    ) -> None:
        self.broker_id = broker_id
        self.pid: int | None = None
        self.addresses: list[str] = []
        self.exit_code: int | None = None
        self.error = ""
        self._starter = starter
        self._settings = settings
        self._log_path = log_path
        self._was_killed = False

    def begin(self) -> None:
        """Start without waiting."""
        self._starter.begin(self, self._settings, self._log_path)

    def start(self) -> list[str]:
        """The addresses of its listeners, once clients are served; `begin` comes first."""
        self._starter.wait(
            lambda: bool(self.addresses) or self.exit_code is not None,
            f"broker {self.broker_id} did not start: {self._stderr()}",
        )
        if not self.addresses:
            raise ClusterError(f"broker {self.broker_id} did not start: {self.error or self._stderr()}")
        return self.addresses

    def stop(self) -> None:
        """Stop in order; ClusterError if the broker had failed, unless it was killed on purpose."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # it may be paused
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            self._wait_for_exit()
        except ClusterError:
            if time.monotonic() < deadline:
                raise
            self._signal(signal.SIGKILL)
            self._wait_for_exit()
        if self.exit_code != 0 and not self._was_killed:
            raise ClusterError(
                f"broker {self.broker_id} ended with exit code {self.exit_code}: {self._stderr()}"
            )

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self._was_killed = True
        self._signal(signal.SIGKILL)
        self._wait_for_exit()

    def pause(self) -> None:
        """Stop the process where it is, with SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        self._signal(signal.SIGCONT)

    def look(self, function: Callable[[BrokerServer], Found]) -> Found:
        """Not possible in another process."""
        raise ClusterError("only a broker in this process can be looked into: Cluster(process=False)")

    def _signal(self, number: signal.Signals) -> None:
        if self.exit_code is None and self.pid is not None:
            with contextlib.suppress(ProcessLookupError):  # it has just exited
                os.kill(self.pid, number)

    def _wait_for_exit(self) -> None:
        self._starter.wait(lambda: self.exit_code is not None, f"broker {self.broker_id} did not stop")

    def _stderr(self) -> str:
        if not self._log_path.exists():
            return "it said nothing on stderr"
        return self._log_path.read_text(errors="replace").strip() or "it said nothing on stderr"
