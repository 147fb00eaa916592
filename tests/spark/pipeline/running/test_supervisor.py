"""How a run ends, is stopped and starts again: the real command over a driver that needs no Spark."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.spark.pipeline.running.state_directory import (
    FAILED,
    RESTARTING,
    RUNNING,
    STOPPED,
    STOPPING,
    RunStatus,
    process_start,
)
from spark.pipeline.terminal import Terminal, until

TESTS = Path(__file__).resolve().parents[3]
PIPELINE = """\
name: fake
sources: {rows: {files: rows, format: json, schema: id bigint, stream: true}}
sinks: {all: {from: rows, parquet: out}}
restart: {attempts: 2, delay: DELAY}
"""


class Fake(Terminal):
    """Runs the pipeline `fake`, whose driver is given what to do at each start."""

    def begin(self, *steps: str, delay: str = "10 ms", output: str = "json") -> Any:
        (self.directory / "fake.yaml").write_text(PIPELINE.replace("DELAY", delay))
        (self.directory / "plan").write_text("\n".join(steps))
        return self.start("run", "fake.yaml", "-o", output)

    def ended(self, *steps: str) -> tuple[int, str, str]:
        run = self.begin(*steps)
        out, errors = run.communicate()
        return run.returncode, out, errors

    def until_state(self, state: str) -> RunStatus:
        until((self.directory / "state/fake/status.json").exists)
        until(lambda: self.status("fake").state == state)
        return self.status("fake")


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Terminal]:
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    settings = {"PYTHONPATH": path, "FAKE_DRIVER": str(tmp_path / "plan")}
    terminal = Fake(tmp_path, "spark.pipeline.running.with_fake_driver", **settings)
    try:
        yield terminal
    finally:
        terminal.close()


def test_ctrl_c_and_sigterm_let_the_micro_batch_end(fake):
    for number in (signal.SIGINT, signal.SIGTERM):
        run = fake.begin("wait", output="lines")
        fake.until_state(RUNNING)
        run.send_signal(number)
        out, _ = run.communicate()
        assert (run.returncode, out) == (0, "fake ended: 0 rows written.\n")
        assert fake.status("fake").state == STOPPED


def test_a_second_ctrl_c_ends_the_driver_at_once(fake):
    run = fake.begin("hang", output="lines")
    driver = fake.until_state(RUNNING).jvm_pid
    run.send_signal(signal.SIGINT)
    fake.until_state(STOPPING)
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate()
    assert (run.returncode, out) == (130, "fake stopped at once: 0 rows written.\n")
    assert process_start(driver) == ""
    assert fake.status("fake").state == STOPPED


def test_stop_now_does_not_wait_for_the_micro_batch(fake):
    run = fake.begin("hang")
    fake.until_state(RUNNING)
    assert fake.run("stop", "--now", "fake") == (0, "fake has ended.\n", "")
    run.communicate()
    assert run.returncode == 130
    code, _, errors = fake.run("stop", "fake")
    assert (code, errors) == (1, "Error: the pipeline fake is not running: it is stopped\n")


def test_ctrl_c_while_it_starts_or_waits_to_start_again_ends_it(fake, tmp_path):
    run = fake.begin("slow")
    until((tmp_path / "begun").exists)
    run.send_signal(signal.SIGINT)
    run.communicate()
    assert run.returncode == 0

    run = fake.begin("fail", delay="1 hour")
    assert fake.until_state(RESTARTING).error == "it did fail"
    run.send_signal(signal.SIGINT)
    run.communicate()
    assert run.returncode == 0
    assert fake.status("fake").state == STOPPED


def test_what_may_pass_starts_again_until_the_attempts_are_used_up(fake):
    code, out, errors = fake.ended("fail", "die", "done")
    assert (code, errors) == (0, "")
    events = [json.loads(line) for line in out.splitlines()]
    assert [one["delay_s"] for one in events if one["event"] == "restarting"] == [0.01, 0.02]
    status = fake.status("fake")
    assert (status.state, status.restarts, status.error) == (STOPPED, 2, None)
    assert "the driver ended by itself (3)" in status.progress["last_error"]

    code, _, errors = fake.ended("fail", "fail", "fail", "done")
    assert (code, errors.splitlines()[0]) == (1, "Error: it did fail")
    assert fake.status("fake").state == FAILED
    code, _, errors = fake.ended("die", "die", "die")
    assert (code, errors.startswith("Error: the driver ended by itself (3); its log is ")) == (1, True)


def test_what_stays_is_refused_at_once(fake):
    code, _, errors = fake.ended("refuse", "done")
    assert (code, errors) == (2, "Error: it did refuse\n")
    assert fake.status("fake").restarts == 0
