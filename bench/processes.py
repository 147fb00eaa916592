"""What a running process has used so far, as the kernel counts it: CPU seconds of all its threads, memory."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

KIB = 1024
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
CONTROLLER_PORT_DISTANCE = 1000


def cpu_seconds(pid: int) -> float:
    """utime + stime of the process, threads that ended included, to the tick of 10 ms.

    /proc/PID/stat: "pid (name) state ppid ..."; utime and stime are fields 14 and 15, counted from 1.
    """
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / TICKS_PER_SECOND


def precise_cpu_seconds(pid: int) -> float:
    """The same sum in nanoseconds: the kernel's CPU clock of another process.

    A consumer reads 200 MB for five ticks of our broker's time, which is too few to compare. The clock's id
    is made from the pid as by clock_getcpuclockid(3): the inverted pid above three bits, 2 = scheduler time.
    """
    return time.clock_gettime((~pid << 3) | 2)


def resident_bytes(pid: int) -> int:
    """Memory in RAM now (VmRSS)."""
    return _status_bytes(pid, "VmRSS:")


def _status_bytes(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * KIB
    raise LookupError(f"/proc/{pid}/status has no {field}")


def wait_until(what: str, holds: Callable[[], bool], *, seconds: float = 60, step: float = 0.01) -> None:
    """Poll until the condition holds; TimeoutError names the condition."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(step)


def stop(process: subprocess.Popen[bytes], *, seconds: float = 60) -> None:
    """Ask it to end in order; kill it when it does not."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False


def free_port() -> int:
    """A free port; the port of Kafka's controller is free too."""
    for _ in range(100):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        controller_port = port + CONTROLLER_PORT_DISTANCE
        if controller_port < 2**16 and is_free(controller_port):
            return port
    raise OSError("no pair of free ports found")


def allow_many_files() -> int:
    """Raise this process's limit of open files as far as it may go; children inherit it. The new limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
