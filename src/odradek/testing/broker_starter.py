"""The process that forks the brokers of a cluster: it imports them once, and takes commands from its starter.

    python -m odradek.testing.broker_starter

    stdin    {"broker": 1, "settings": {"log.dirs": "…"}, "log": "PATH"}     one line of JSON for each start
    stdout   {"broker": 1, "pid": 4711}, then {"broker": 1, "ready": ["127.0.0.1:41234"]}, at last
             {"pid": 4711, "exit": 0}; {"broker": 1, "error": "…"} for settings that are refused

When stdin ends, the brokers are stopped.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from functools import partial
from typing import Any

from odradek.broker.settings.load import Given, combine
from odradek.cli.forked_brokers import Parent
from odradek.common.errors import ConfigError


class _Starter:
    """Owned by the main thread, which also runs the handler of SIGCHLD."""

    def __init__(self) -> None:
        self._parent = Parent()
        self._pids: set[int] = set()

    def run(self) -> None:
        """Handle commands until stdin ends, then wait for the brokers."""
        signal.signal(signal.SIGCHLD, lambda *_: self._reap())
        rest = b""
        while chunk := os.read(0, 65536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._start(json.loads(line))
        for pid in list(self._pids):
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)
        while self._pids:
            signal.pause()

    def _start(self, command: dict[str, Any]) -> None:
        broker = command["broker"]
        try:
            loaded = combine([Given(key, text, "Cluster") for key, text in command["settings"].items()])
        except ConfigError as error:
            _say({"broker": broker, "error": str(error)})
            return
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        pid = self._parent.fork(
            loaded.config,
            lambda addresses: _say({"broker": broker, "ready": addresses}),
            prepare=partial(_prepare, command["log"]),
        )
        self._pids.add(pid)
        _say({"broker": broker, "pid": pid})
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._pids.discard(pid)
            _say({"pid": pid, "exit": os.waitstatus_to_exitcode(status)})


def _prepare(log_path: str) -> None:
    """In the new broker: stderr goes to its log."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    os.close(log)


def _say(event: dict[str, Any]) -> None:
    # One write: lines of several processes do not mix.
    os.write(1, json.dumps(event).encode() + b"\n")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    _Starter().run()
    sys.exit(0)
