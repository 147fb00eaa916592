"""How a run ends, is stopped and starts again: the real command over a driver that needs no Spark."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import suppress
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
SINK = "parquet: out"


class Fake(Terminal):
    """Runs the pipeline `fake`, whose driver is given what to do at each start."""

    def begin(
        self,
        *steps: str,
        delay: str = "10 ms",
        output: str = "json",
        arguments: Sequence[str] = (),
        sink: str = SINK,
    ) -> Any:
        text = PIPELINE.replace("DELAY", delay).replace(SINK, sink)
        (self.directory / "fake.yaml").write_text(text)
        (self.directory / "plan").write_text("\n".join(steps))
        return self.start("run", "fake.yaml", "-o", output, *arguments)

    def ended(self, *steps: str, **given: Any) -> tuple[int, str, str]:
        run = self.begin(*steps, **given)
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
        assert (run.returncode, out) == (0, "fake ended: 20 rows written.\n")
        assert fake.status("fake").state == STOPPED


def test_a_second_ctrl_c_ends_the_driver_at_once(fake):
    run = fake.begin("hang", output="lines")
    driver = fake.until_state(RUNNING).jvm_pid
    run.send_signal(signal.SIGINT)
    fake.until_state(STOPPING)
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate()
    assert (run.returncode, out) == (130, "fake stopped at once: 20 rows written.\n")
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


@pytest.mark.parametrize("step", ["orphan", "linger"])
def test_nothing_starts_again_while_the_jvm_of_the_driver_before_is_there(fake, tmp_path, step):
    code, _, errors = fake.ended(step, "done")
    assert (code, errors) == (0, "")
    assert (tmp_path / "left").read_text() == "False"
    assert fake.status("fake").restarts == 1


def test_what_stays_is_refused_at_once(fake):
    code, _, errors = fake.ended("refuse", "done")
    assert (code, errors) == (2, "Error: it did refuse\n")
    assert fake.status("fake").restarts == 0


def test_options_of_the_command_reach_the_driver(fake, tmp_path):
    def driver_of(*arguments: str) -> list[str]:
        assert fake.ended("done", arguments=arguments)[0] == 0
        given = json.loads((tmp_path / "arguments").read_text())
        assert given[:2] == ["--file", "fake.yaml"]
        return given[2:]

    always = ["--trigger", "always"]
    assert driver_of() == [*always, "127.0.0.1"]
    assert driver_of("--once", "--set", "a=b=c", "--jars", "x.jar,y.jar") == [
        *("--trigger", "once", "--set", "spark.jars=x.jar,y.jar", "--set", "a=b=c", "127.0.0.1")
    ]
    assert driver_of("--available-now", "-b", "there:1", "--master", "local[1]") == [
        *("--trigger", "available-now", "--bootstrap", "there:1", "--master", "local[1]", "127.0.0.1")
    ]
    # A driver of a cluster must have an address that its executors can reach.
    remote = ["--set", "spark.master=spark://there:7077"]
    assert driver_of(*remote) == [*always, *remote, ""]
    code, _, errors = fake.ended("done", arguments=["--set", "nothing"])
    assert (code, "--set 'nothing' is not NAME=VALUE" in errors) == (2, True)


def test_progress_as_lines_goes_to_standard_error(fake):
    code, out, errors = fake.ended("done", output="lines")
    assert (code, out) == (0, "fake ended: 20 rows written.\n")
    assert "fake: running; all: batch -1, 0 rows in (0/s)" in errors


def test_rows_of_a_console_sink_are_shown_beside_the_progress(fake):
    code, out, _ = fake.ended("done", output="lines", sink="console: true")
    assert (code, out) == (0, "a row of a console sink\nfake ended: 20 rows written.\n")

    code, out, errors = fake.ended("done", sink="console: true")
    names = [json.loads(line)["event"] for line in out.splitlines()]
    assert names[-1] == "summary"
    assert [name for name in names if name != "summary"] == [
        *("session", "running", "progress", "lag", "lag")
    ]
    assert errors == "a row of a console sink\n"

    code, _, errors = fake.ended("done", output="live", sink="console: true")
    assert code == 2
    assert "a console sink prints rows where the live view is: use -o lines or -o json" in errors


def test_json_and_status_say_whether_the_lag_grows(fake):
    code, out, _ = fake.ended("done")
    lags = [event for event in map(json.loads, out.splitlines()) if event["event"] == "lag"]
    assert (code, [event["trend"] for event in lags]) == (0, [{"rows-0": "same"}, {"rows-0": "up"}])
    code, out, _ = fake.run("status", "fake")
    assert code == 0
    assert "lag 400, lag_trend up" in out
    status = json.loads(fake.run("status", "fake", "-o", "json")[1])
    assert status["progress"]["queries"]["all"]["lag_trend"] == {"rows-0": "up"}


def test_json_has_a_row_of_the_whole_run_each_second_and_at_its_end(fake):
    run = fake.begin("fail", "wait")
    rows = []
    while not (rows and rows[-1]["state"] == RUNNING and len(rows) > 2):
        event = json.loads(run.stdout.readline())
        rows += [event] if event["event"] == "summary" and event["queries"].get("all") else []
    last = rows[-1]
    assert (last["pipeline"], last["restarts"], last["last_error"]) == ("fake", 1, "it did fail")
    assert last["dead_letters"] == 0
    assert last["queries"]["all"]["rows_in"] == 30
    assert last["queries"]["all"]["rows_in_per_s"] > 0
    run.send_signal(signal.SIGTERM)
    out, _ = run.communicate()
    end = json.loads(out.splitlines()[-1])
    assert (end["event"], end["state"], end["queries"]["all"]["rows_out"]) == ("summary", STOPPED, 20)

    _, out, _ = fake.ended("refuse")
    end = json.loads(out.splitlines()[-1])
    assert (end["event"], end["state"], end["error"]) == ("summary", FAILED, "it did refuse")


def test_status_shows_the_last_error_of_a_pipeline_that_runs_again(fake):
    assert fake.ended("fail", "done")[0] == 0
    _, out, _ = fake.run("status", "fake")
    assert "last error: it did fail" in out


def test_metrics_are_served_while_it_runs(fake):
    run = fake.begin("wait", arguments=["--metrics", "127.0.0.1:0"])
    address = run.stderr.readline().removeprefix("metrics: ").strip()
    fake.until_state(RUNNING)
    wanted = 'odradek_pipeline_rows_out_total{pipeline="fake",query="all"} 20\n'
    until(lambda: wanted in urllib.request.urlopen(address).read().decode())
    assert "odradek_pipeline_failures_total" in urllib.request.urlopen(address).read().decode()
    run.send_signal(signal.SIGTERM)
    run.communicate()
    assert run.returncode == 0

    code, _, errors = fake.ended("done", arguments=["--metrics", ":99999"])
    assert (code, "--metrics ':99999' is not HOST:PORT" in errors) == (2, True)


def test_a_terminal_shows_the_live_view_and_its_ctrl_c_ends_the_run(fake):
    """A terminal sends Ctrl-C to the command, and not to the driver, which is in a session of its own."""
    fake.begin("done", output="json").communicate()
    (fake.directory / "plan").write_text("wait")
    master, slave = pty.openpty()
    run = subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-m", fake.module, "pipeline", "run", "fake.yaml"],
        cwd=fake.directory,
        env={**fake.environment, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    shown = b""
    while b"rows/s in" not in shown or b"running" not in shown:
        shown += os.read(master, 4096)
    os.write(master, b"\x03")
    with suppress(OSError):  # the terminal is closed by its last user
        while more := os.read(master, 4096):
            shown += more
    assert run.wait() == 0
    os.close(master)
    assert b"fake ended: 20 rows written." in shown
