from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from odradek.cli.progress import SHOWN_FROM_BYTES, progress_bar

PROGRAM = f"""
from odradek.cli.progress import progress_bar
with progress_bar("verify", {SHOWN_FROM_BYTES}) as advance:
    for _ in range(4):
        advance({SHOWN_FROM_BYTES // 4})
"""


def stderr_on_a_terminal() -> bytes:
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", PROGRAM], stderr=theirs, check=True)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return shown


def test_a_terminal_gets_a_bar_for_much_work() -> None:
    assert b"verify" in stderr_on_a_terminal()


def test_others_get_nothing() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    assert result.stderr == result.stdout == b""


def test_little_work_needs_no_bar(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("verify", 10) as advance:
        advance(10)
    assert capfd.readouterr() == ("", "")
