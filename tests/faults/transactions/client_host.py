"""Runs each client in a process of its own, which may be killed: it is forked from here, imports and all.

A job is a line on standard input. Answers: `pid PID`, a line for each step, and `gone STATUS` at the end.
"""

from __future__ import annotations

import os
import sys
import traceback

from faults.transactions.jobs import Job
from faults.transactions.recorded_client import run_job


def say(line: str) -> None:
    """One line to the parent, at once."""
    os.write(1, f"{line}\n".encode())


def run_forked(job: Job) -> int:
    """The exit status of a client; negative is a signal."""
    pid = os.fork()
    if pid == 0:
        say(f"pid {os.getpid()}")
        try:
            run_job(job, say)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    for line in sys.stdin:
        say(f"gone {run_forked(Job.decode(line))}")
