"""Processes that are watched by pid and start time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from odradek.coordination.embedded.processes import this_process, watch


def test_a_process_is_watched_until_it_exits() -> None:
    this = this_process()
    assert this.pid == os.getpid()
    watched = watch(this)
    assert watched is not None
    assert not watched.has_exited()
    watched.close()


def test_a_killed_process_has_exited_before_its_parent_waits_for_it() -> None:
    script = (
        "from odradek.coordination.embedded.processes import this_process;"
        "print(*this_process(), flush=True); input()"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    identity = this_process()._make(map(int, child.stdout.readline().split()))
    watched = watch(identity)
    assert watched is not None
    assert not watched.has_exited()
    assert watched.kill()
    assert os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT).si_status == signal.SIGKILL
    assert watched.has_exited()
    assert watched.has_exited()
    child.communicate()

    gone = watch(identity)
    assert gone is not None
    assert gone.has_exited()
    assert gone.kill()


def test_a_pid_that_was_used_again_is_another_process() -> None:
    watched = watch(this_process()._replace(start_ticks=1))
    assert watched is not None
    assert watched.has_exited()
    watched.kill()  # kills no process


def test_a_process_of_another_namespace_cannot_be_watched() -> None:
    assert watch(this_process()._replace(pid_namespace=1)) is None
    assert watch(this_process()._replace(start_ticks=0)) is None
