"""A run from its start to its end: lock, driver process, restarts, status file."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from odradek.spark.pipeline.definition.model import ConsoleSink, PipelineModel
from odradek.spark.pipeline.running import state_directory as states
from odradek.spark.pipeline.running.driver_process import DriverProcess
from odradek.spark.pipeline.running.restarts import Restarts, after_failure
from odradek.spark.pipeline.running.state_directory import RunStatus, StateDirectory, process_start
from odradek.spark.pipeline.running.summary import RunSummary

EXIT_DONE, EXIT_FAILED, EXIT_REFUSED, EXIT_STOPPED_AT_ONCE = 0, 1, 2, 130
_STATUS_SECONDS = 1.0
_OLD_JVM_SECONDS = 30.0
_JVM_END_SECONDS = 10.0

OnEvent = Callable[[Mapping[str, Any], RunSummary], None]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command says beside the file."""

    bootstrap: str | None = None
    master: str | None = None
    trigger: str = "always"  # available-now, once
    settings: tuple[str, ...] = ()
    rows_to_stderr: bool = False  # those of console sinks

    def arguments(self, file: str) -> list[str]:
        """Arguments of the driver."""
        given = ["--file", file, "--trigger", self.trigger]
        given += ["--bootstrap", self.bootstrap] if self.bootstrap else []
        given += ["--master", self.master] if self.master else []
        for pair in self.settings:
            given += ["--set", pair]
        return given

    def master_of(self, pipeline: PipelineModel) -> str:
        """Spark's master, as driver/session.py chooses it."""
        settings = dict(pipeline.spark) | dict(pair.split("=", 1) for pair in self.settings)
        return self.master or settings.get("spark.master") or os.environ.get("MASTER", "local[*]")


class Supervisor:
    """One run. `run` belongs to the main thread; `request_stop` may be called by signal handlers."""

    def __init__(self, pipeline: PipelineModel, options: RunOptions, on_event: OnEvent) -> None:
        self.pipeline = pipeline
        self.directory = StateDirectory(pipeline.name)
        self.summary = RunSummary(pipeline.name, time.monotonic())
        self._options = options
        self._on_event = on_event
        self._driver: DriverProcess | None = None
        self._stop_requests = 0
        self._stop_requested = threading.Event()
        self._is_permanent = self._has_reason = False
        self._written_s = 0.0
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._status = RunStatus(
            name=pipeline.name,
            file=pipeline.file,
            pid=os.getpid(),
            process_start=process_start(os.getpid()),
            state=states.STARTING,
            started_at=now,
            updated_at=now,
            checkpoint=pipeline.checkpoint,
        )

    def request_stop(self) -> None:
        """The first request lets micro-batches end, the second ends the driver at once."""
        self._stop_requests += 1
        self._stop_requested.set()
        driver = self._driver
        if driver is None:
            return
        if self._stop_requests == 1:
            driver.stop()
        else:
            driver.kill()

    def run(self) -> int:
        """Run until the pipeline ends, is stopped, or has failed for good; the exit code."""
        locks = self.directory.lock(self.pipeline.checkpoint)
        try:
            self._wait_for_jvm_before()
            self.directory.log.unlink(missing_ok=True)
            self._write_status(states.STARTING)
            return self._run_with_restarts(locks)
        finally:
            for descriptor in locks:
                os.close(descriptor)

    def _run_with_restarts(self, locks: Sequence[int]) -> int:
        restarts = Restarts(self.pipeline.restart)
        while True:
            started_s = time.monotonic()
            driver = self._start_driver(locks)
            for event in driver.events():
                self._take(event)
            code = driver.wait()
            if self._stop_requests > 1:
                self._write_status(states.STOPPED)
                return EXIT_STOPPED_AT_ONCE
            if code == 0:
                self._write_status(states.STOPPED)
                return EXIT_DONE
            if not self._has_reason:
                self.summary.fail(f"the driver ended by itself ({code}); its log is {self.directory.log}")
                driver.kill()  # its JVM, which it had no time to end
            restarts, delay_s = after_failure(restarts, time.monotonic() - started_s, self._is_permanent)
            if delay_s is None or self._stop_requests:
                self._write_status(states.FAILED)
                return EXIT_REFUSED if self._is_permanent else EXIT_FAILED
            self._end_jvm(driver)
            self.summary.restarts = restarts.total
            self._write_status(states.RESTARTING)
            event = {"event": "restarting", "error": self.summary.error, "delay_s": delay_s}
            self._on_event(event, self.summary)
            if self._stop_requested.wait(delay_s):
                self._write_status(states.STOPPED)
                return EXIT_DONE

    def _start_driver(self, locks: Sequence[int]) -> DriverProcess:
        shows_output = any(isinstance(sink, ConsoleSink) for sink in self.pipeline.sinks)
        output = None if not shows_output else 2 if self._options.rows_to_stderr else 1
        arguments = self._options.arguments(self.pipeline.file)
        is_local = self._options.master_of(self.pipeline).startswith("local")
        self._is_permanent = self._has_reason = False
        self._driver = driver = DriverProcess(arguments, self.directory.log, locks, output, is_local)
        if self._stop_requests > 1:
            driver.kill()
        elif self._stop_requests:
            driver.stop()
        return driver

    def _take(self, event: Mapping[str, Any]) -> None:
        self.summary.on_event(event, time.monotonic())
        if event["event"] == "session":
            pid = int(event["jvm_pid"])
            self._status = replace(
                self._status, master=event["master"], jvm_pid=pid, jvm_start=process_start(pid)
            )
        if event["event"] == "running":
            self.summary.error = None
        if event["event"] == "failed":
            self._is_permanent, self._has_reason = bool(event["is_permanent"]), True
        is_due = time.monotonic() - self._written_s >= _STATUS_SECONDS
        if is_due or event["event"] not in ("progress", "lag"):
            self._write_status(self.summary.state)
        self._on_event(event, self.summary)

    def _write_status(self, state: str) -> None:
        now_s = time.monotonic()
        self._written_s = now_s
        self.summary.state = state
        self._status = replace(
            self._status,
            state=state,
            updated_at=datetime.now(UTC).isoformat(timespec="seconds"),
            error=self.summary.error,
            restarts=self.summary.restarts,
            progress=self.summary.as_row(now_s),
        )
        self.directory.write(self._status)

    def _wait_for_jvm_before(self) -> None:
        """A run that was killed leaves its JVM for a moment, which could still commit a micro-batch."""
        try:
            before = self.directory.read()
        except states.NoSuchRun:
            return
        if not _has_ended_within(before, _OLD_JVM_SECONDS):
            raise states.AlreadyRunning(_still_there(before))

    def _end_jvm(self, driver: DriverProcess) -> None:
        """Before a restart: the JVM of a failed driver could still commit a micro-batch, too."""
        if not _has_ended_within(self._status, _JVM_END_SECONDS):
            driver.kill()
        if not _has_ended_within(self._status, _OLD_JVM_SECONDS):
            self._write_status(states.FAILED)
            raise states.AlreadyRunning(_still_there(self._status))


def _has_ended_within(run: RunStatus, patience_s: float) -> bool:
    """Wait for the end of a run's JVM."""
    deadline = time.monotonic() + patience_s
    while run.jvm_pid and run.jvm_start and process_start(run.jvm_pid) == run.jvm_start:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _still_there(run: RunStatus) -> str:
    return f"process {run.jvm_pid}, the JVM of an earlier run, is still there: end it"
