"""Processes of this machine, known by pid and start time: a pid that was used again is not mistaken.

Linux only, by /proc and pidfds. Elsewhere, and for a process of another pid namespace, `watch` returns None.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from pathlib import Path
from typing import NamedTuple

_START_TIME_FIELD = 19  # in /proc/PID/stat, counted from the field after the name


class ProcessIdentity(NamedTuple):
    """One process of this boot: clock ticks from boot to its start, and the inode of its pid namespace."""

    pid: int
    start_ticks: int
    pid_namespace: int


def this_process() -> ProcessIdentity:
    """The identity of this process; zeroes where the system does not have it."""
    pid = os.getpid()
    return ProcessIdentity(pid, _start_ticks(pid) or 0, _pid_namespace())


def watch(identity: ProcessIdentity) -> WatchedProcess | None:
    """Watch a process for its exit; None if this process cannot see it."""
    if not identity.start_ticks or identity.pid_namespace != _pid_namespace():
        return None
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        fd = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return WatchedProcess(identity, None)
    except OSError:  # a kernel or a sandbox without pidfds
        return None
    # Compared after the pidfd was opened: from here on the pid cannot be used again unnoticed.
    if _start_ticks(identity.pid) == identity.start_ticks:
        return WatchedProcess(identity, fd)
    os.close(fd)
    return WatchedProcess(identity, None)


class WatchedProcess:
    """A process and its pidfd. Owned by the thread that opened it."""

    def __init__(self, identity: ProcessIdentity, fd: int | None) -> None:
        self.identity = identity
        self.fd = fd
        """Readable when the process has exited; None once that was noticed."""

    def has_exited(self) -> bool:
        """Whether it has exited; a zombie has."""
        if self.fd is None:
            return True
        poller = select.poll()
        poller.register(self.fd, select.POLLIN)
        if poller.poll(0):
            self.close()
        return self.fd is None

    def kill(self) -> bool:
        """Send SIGKILL; False if that is not allowed."""
        if self.fd is not None:
            try:
                signal.pidfd_send_signal(self.fd, signal.SIGKILL)
            except ProcessLookupError:
                return True
            except PermissionError:
                return False
        return True

    def close(self) -> None:
        """Stop watching."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None


def _start_ticks(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name of the program, in parentheses, may have spaces and parentheses of its own.
    return int(stat.rpartition(b")")[2].split()[_START_TIME_FIELD])


def _pid_namespace() -> int:
    with contextlib.suppress(OSError):
        return os.stat("/proc/self/ns/pid").st_ino
    return 0
