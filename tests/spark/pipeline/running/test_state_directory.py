"""Locks and status files of runs."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.spark.pipeline.definition.errors import PipelineError
from odradek.spark.pipeline.running.state_directory import (
    KILLED,
    RUNNING,
    STOPPED,
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


def locked(tmp_path: Path, name: str, checkpoint: str = "checkpoint") -> list[int]:
    return StateDirectory(name, tmp_path / "state").lock(str(tmp_path / checkpoint))


def close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def test_two_runs_of_one_pipeline_are_refused(tmp_path: Path):
    locks = locked(tmp_path, "first")
    with pytest.raises(AlreadyRunning, match=r"the pipeline first is already running$"):
        locked(tmp_path, "first", "other")
    StateDirectory("first", tmp_path / "state").write(status("first", os.getpid()))
    with pytest.raises(AlreadyRunning, match=f"first is already running, process {os.getpid()}"):
        locked(tmp_path, "first", "other")
    close(locks)
    close(locked(tmp_path, "first"))


@pytest.mark.parametrize("state", [None, STOPPED])
def test_two_pipelines_with_one_checkpoint_are_refused_and_the_other_is_named(tmp_path: Path, state):
    """`state`: what the second pipeline did before."""
    locks = locked(tmp_path, "first")
    second = StateDirectory("second", tmp_path / "state")
    if state is not None:
        second.write(status("second", os.getpid(), state))
    checkpoint = str(tmp_path / "checkpoint")
    with pytest.raises(AlreadyRunning, match=f"another run uses the checkpoint of second, {checkpoint}: "):
        locked(tmp_path, "second")

    running = dataclasses.replace(status("first", os.getpid()), checkpoint=checkpoint)
    StateDirectory("first", tmp_path / "state").write(running)
    with pytest.raises(AlreadyRunning) as refused:
        locked(tmp_path, "second")
    assert str(refused.value) == (
        f"the pipeline first, process {os.getpid()}, uses the checkpoint of second, {checkpoint}: "
        "`odradek pipeline stop first` stops it; or set `checkpoint` to another directory"
    )
    assert not Path(checkpoint).exists()
    close(locks)
    close(locked(tmp_path, "second"))


def test_a_checkpoint_below_a_file_is_refused_and_locks_nothing(tmp_path: Path):
    (tmp_path / "file").write_text("a file")
    with pytest.raises(PipelineError, match=r"file/checkpoint cannot be used, as .*/file is a file"):
        locked(tmp_path, "first", "file/checkpoint")
    close(locked(tmp_path, "first"))


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
