"""kill -9 over and over a process that writes: nothing it had reported is missing, nothing is torn."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from log.given_logs import SMALL, after_crash, offsets_and_values, open_log

TESTS = Path(__file__).resolve().parents[1]
WRITER = TESTS / "log" / "writer_process.py"


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_that_it_had_reported(tmp_path: Path) -> None:
    rng = random.Random(20)
    reported = 0
    for life in range(12):
        reported = max(reported, write_until_killed(tmp_path / "log", life, after_s=rng.uniform(0.05, 0.6)))
        recovery_point = rng.randrange(reported + 1)
        log = open_log(
            tmp_path / "log",
            SMALL.replace(internal_segment_bytes=20_000),
            checkpoints=after_crash(recovery_point, high_watermark=reported),
        )
        assert reported <= log.log_end_offset
        found = offsets_and_values(log)
        assert [offset for offset, _ in found] == list(range(log.log_start_offset, log.log_end_offset))
        assert all(value and value.startswith(b"%d:" % (offset // 2 * 2)) for offset, value in found)
        assert log.epochs.latest <= life
        log.release()
    assert reported > 1000


def write_until_killed(path: Path, leader_epoch: int, *, after_s: float) -> int:
    """The last log end that the process reported before it died."""
    with subprocess.Popen(
        [sys.executable, str(WRITER), str(path), str(leader_epoch)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("loaded")
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
        lines = process.stdout.read().split("\n")[:-1]  # the last line may be torn
    return max((int(line.split()[1]) for line in lines), default=0)
