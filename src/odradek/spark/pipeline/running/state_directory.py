"""The runs of this user's pipelines: one directory a pipeline, with a lock, a status and the driver's log.

    STATE/NAME/lock          locked by the processes of the run
    STATE/NAME/status.json   see RunStatus
    STATE/NAME/driver.log    what Spark writes to standard error

STATE is ODRADEK_PIPELINE_STATE, otherwise ~/.local/state/odradek/pipelines (or below XDG_STATE_HOME).
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odradek.common.errors import OdradekError
from odradek.spark.pipeline.definition.directory_errors import refused_directory
from odradek.spark.pipeline.definition.errors import PipelineError

VARIABLE = "ODRADEK_PIPELINE_STATE"

STARTING, PLANNING, RUNNING = "starting", "planning", "running"
STOPPING, RESTARTING = "stopping", "restarting"
STOPPED, FAILED, KILLED = "stopped", "failed", "killed"
LIVE = (STARTING, PLANNING, RUNNING, STOPPING, RESTARTING)


class AlreadyRunning(OdradekError):
    """Another run of the same pipeline, or of the same checkpoint, is there."""


class NoSuchRun(OdradekError):
    """There is no such pipeline, or it is not running."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """What is known of the last run of a pipeline."""

    name: str
    file: str
    pid: int
    process_start: str  # the kernel's start time of the process: a pid is used again some day
    state: str
    started_at: str
    updated_at: str
    master: str = ""
    jvm_pid: int = 0
    jvm_start: str = ""
    checkpoint: str = ""
    error: str | None = None
    restarts: int = 0
    progress: Mapping[str, Any] = field(default_factory=dict)


def state_root(environment: Mapping[str, str] | None = None) -> Path:
    """Where the directories of all pipelines are."""
    given = os.environ if environment is None else environment
    if VARIABLE in given:
        return Path(given[VARIABLE])
    base = given.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "odradek" / "pipelines"


class StateDirectory:
    """The directory of one pipeline. Written by its run, read by other commands."""

    def __init__(self, name: str, root: Path | None = None) -> None:
        self.name = name
        self.path = (root or state_root()) / name

    @property
    def log(self) -> Path:
        """What Spark wrote to standard error."""
        return self.path / "driver.log"

    def read(self) -> RunStatus:
        """The last run's status, `killed` if its process is gone without saying so."""
        try:
            fields = json.loads((self.path / "status.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise NoSuchRun(
                f"the pipeline {self.name} has never been run here: `odradek pipeline list`"
            ) from None
        known = {one.name for one in dataclasses.fields(RunStatus)}
        status = RunStatus(**{key: value for key, value in fields.items() if key in known})
        is_gone = status.state in LIVE and process_start(status.pid) != status.process_start
        return dataclasses.replace(status, state=KILLED) if is_gone else status

    def write(self, status: RunStatus) -> None:
        """Replace the status as a whole."""
        self.path.mkdir(parents=True, exist_ok=True)
        new = self.path / "status.json.new"
        new.write_text(json.dumps(dataclasses.asdict(status), indent=1), encoding="utf-8")
        os.replace(new, self.path / "status.json")

    def lock(self, checkpoint: str) -> list[int]:
        """Lock the pipeline and its checkpoint; the descriptors, which child processes inherit."""
        try:
            descriptors = [_locked(self.path / "lock")]
        except BlockingIOError:
            raise AlreadyRunning(self._already_running()) from None
        if "://" in checkpoint:
            return descriptors
        try:
            # Beside the checkpoint, which must stay empty until it is known to be usable.
            with refused_directory(checkpoint):
                descriptors.append(_locked(Path(checkpoint.rstrip("/") + ".lock")))
        except BlockingIOError:
            _close(descriptors)
            raise AlreadyRunning(self._checkpoint_in_use(checkpoint)) from None
        except (OSError, PipelineError):
            _close(descriptors)
            raise
        return descriptors

    def _already_running(self) -> str:
        try:
            status = self.read()
        except NoSuchRun:  # it has begun just now
            return f"the pipeline {self.name} is already running"
        who = f", process {status.pid}, from {status.file}" if status.state in LIVE else ""
        return (
            f"the pipeline {self.name} is already running{who}: `odradek pipeline stop {self.name}` stops it"
        )

    def _checkpoint_in_use(self, checkpoint: str) -> str:
        """Another pipeline runs with this checkpoint; one of another user is not known here."""
        runs = (run for run in all_runs(self.path.parent) if run.name != self.name and run.state in LIVE)
        other = next((run for run in runs if run.checkpoint == checkpoint), None)
        if other is None:
            return (
                f"another run uses the checkpoint of {self.name}, {checkpoint}: stop it, or set `checkpoint` "
                "to another directory"
            )
        return (
            f"the pipeline {other.name}, process {other.pid}, uses the checkpoint of {self.name}, "
            f"{checkpoint}: `odradek pipeline stop {other.name}` stops it; or set `checkpoint` to another "
            "directory"
        )


def all_runs(root: Path | None = None) -> list[RunStatus]:
    """The last run of every pipeline."""
    directory = root or state_root()
    names = sorted(one.parent.name for one in directory.glob("*/status.json"))
    return [StateDirectory(name, directory).read() for name in names]


def process_start(pid: int) -> str:
    """The start time of a process as the kernel has it; empty if there is none, or it is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _locked(file: Path) -> int:
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
