"""`odradek pipeline stop`: stops a pipeline that runs in another terminal."""

from __future__ import annotations

import os
import signal
import time

import click

from odradek.cli.connecting import Failed, friendly_errors


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
    for _ in range(2 if now else 1):
        os.kill(run.pid, signal.SIGTERM)
        time.sleep(0.2 if now else 0)
    deadline = time.monotonic() + timeout
    while process_start(run.pid) == run.process_start:
        if time.monotonic() > deadline:
            raise Failed(
                f"{name} has not ended after {timeout:g} s; `odradek pipeline stop --now {name}` ends it"
            )
        time.sleep(0.05)
    click.echo(f"{name} has ended.")
