"""A broker as a process of its own, by the command line: killed, stopped and started on the same data."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

START = (sys.executable, "-m", "odradek.cli.main", "start")
PATIENCE_SECONDS = 60
READY = re.compile(r"^ready: (127\.0\.0\.1:\d+)$", re.MULTILINE)


class BrokerProcess:
    """`odradek start`, with what it says in two files beside its data; it keeps its port over restarts."""

    def __init__(self, directory: Path, *settings: str, port: int | None = None) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.port = port or free_port()
        self.settings = settings
        self.process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log_path(self) -> Path:
        return self.directory / "stderr"

    def command(self) -> list[str]:
        options = [word for setting in self.settings for word in ("--set", setting)]
        listener = f"PLAINTEXT://{self.address}"
        return [*START, "--verbose", "--data-dir", str(self.data), "--listener", listener, *options]

    def launch(self) -> None:
        """Start without waiting. What it says is added to the log; the `ready:` line is forgotten first."""
        self._said.write_bytes(b"")
        with self._said.open("ab") as said, self.log_path.open("ab") as logged:
            self.process = subprocess.Popen(self.command(), stdout=said, stderr=logged)

    def start(self) -> None:
        """Start, and wait until it says that it is ready."""
        self.launch()
        wait_until(lambda: self.is_ready or not self.is_running, "the broker is ready or gone")
        assert self.is_ready, self.log()

    @property
    def is_ready(self) -> bool:
        return READY.search(self._said.read_text()) is not None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def _said(self) -> Path:
        return self.directory / "stdout"

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(PATIENCE_SECONDS)

    def terminate(self) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def log(self) -> str:
        """Everything it has logged, over all its lives."""
        return self.log_path.read_text(errors="replace")

    def resident_bytes(self) -> int:
        assert self.process is not None
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def forget_peak(self) -> None:
        """From now on `peak_bytes` tells of what comes."""
        assert self.process is not None
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak_bytes(self) -> int:
        """The most memory that was resident since `forget_peak`."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (kilobytes,) = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
        return int(kilobytes) * 1024

    def __enter__(self) -> BrokerProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Whatever it does, it is over."""
        if self.is_running:
            self.kill()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Wait for a condition; an assertion that names it if it never comes."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.005)
