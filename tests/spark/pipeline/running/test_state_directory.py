"""Locks and status files of runs."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.spark.pipeline.running.state_directory import (
    KILLED,
    RUNNING,
    AlreadyRunning,
    NoSuchRun,
    RunStatus,
    StateDirectory,
    all_runs,
    process_start,
    state_root,
)


def status(name: str, pid: int, state: str = RUNNING) -> RunStatus:
    return RunStatus(
        name=name,
        file=f"{name}.yaml",
        pid=pid,
        process_start=process_start(pid),
        state=state,
        started_at="2026-01-31T12:00:00+00:00",
        updated_at="2026-01-31T12:00:00+00:00",
        progress={"queries": {}},
    )


def test_two_runs_of_one_pipeline_or_one_checkpoint_are_refused(tmp_path: Path):
    checkpoint = str(tmp_path / "checkpoint")
    first = StateDirectory("first", tmp_path / "state")
    locks = first.lock(checkpoint)
    first.write(status("first", os.getpid()))

    with pytest.raises(AlreadyRunning, match=f"first is already running, process {os.getpid()}"):
        StateDirectory("first", tmp_path / "state").lock(str(tmp_path / "other"))
    with pytest.raises(AlreadyRunning, match="another run uses the checkpoint of second"):
        StateDirectory("second", tmp_path / "state").lock(checkpoint)
    assert not Path(checkpoint).exists()

    for descriptor in locks:
        os.close(descriptor)
    for descriptor in StateDirectory("second", tmp_path / "state").lock(checkpoint):
        os.close(descriptor)


def test_a_run_whose_process_is_gone_was_killed(tmp_path: Path):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    directory = StateDirectory("gone", tmp_path)
    directory.write(status("gone", process.pid))
    assert directory.read().state == RUNNING

    process.kill()
    process.communicate()
    assert directory.read().state == KILLED
    # Another process got its pid.
    directory.write(dataclasses.replace(status("gone", os.getpid()), process_start="1"))
    assert [run.state for run in all_runs(tmp_path)] == [KILLED]


def test_a_pipeline_that_was_never_run_is_named(tmp_path: Path):
    with pytest.raises(NoSuchRun, match="the pipeline none has never been run here"):
        StateDirectory("none", tmp_path).read()
    assert state_root({"ODRADEK_PIPELINE_STATE": "/there"}) == Path("/there")
    assert state_root({"XDG_STATE_HOME": "/state"}) == Path("/state/odradek/pipelines")
