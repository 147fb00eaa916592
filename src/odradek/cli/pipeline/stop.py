"""`odradek pipeline stop`: stops a pipeline that runs in another terminal."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

import click

from odradek.cli.connecting import Failed, friendly_errors

_AGAIN_SECONDS = 0.3


@click.command("stop")
@click.argument("name")
@click.option("--now", is_flag=True, help="Do not wait for the micro-batch.")
@click.option("--timeout", default=120.0, show_default=True, help="How many seconds to wait for its end.")
def command(name: str, now: bool, timeout: float) -> None:
    """Stop a pipeline after its micro-batch, and wait until it has ended."""
    from odradek.spark.pipeline.running.state_directory import (  # noqa: PLC0415
        LIVE,
        NoSuchRun,
        StateDirectory,
        process_start,
    )

    with friendly_errors():
        run = StateDirectory(name).read()
        if run.state not in LIVE:
            raise NoSuchRun(f"the pipeline {name} is not running: it is {run.state}")
    deadline = time.monotonic() + timeout
    signalled_s = 0.0
    while process_start(run.pid) == run.process_start:
        # Again and again with --now: of two signals that come close together, one can get lost.
        if not signalled_s or (now and time.monotonic() > signalled_s + _AGAIN_SECONDS):
            signalled_s = time.monotonic()
            with suppress(ProcessLookupError):
                os.kill(run.pid, signal.SIGTERM)
        if time.monotonic() > deadline:
            raise Failed(
                f"{name} has not ended after {timeout:g} s; `odradek pipeline stop --now {name}` ends it"
            )
        time.sleep(0.05)
    click.echo(f"{name} has ended.")
