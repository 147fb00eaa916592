"""`odradek pipeline`: topics become tables and other topics on Spark, by one small file."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "new": Command("odradek.cli.pipeline.new", "Write a pipeline file, also from a sample of a topic."),
    "check": Command("odradek.cli.pipeline.check", "Check a pipeline file."),
    "run": Command("odradek.cli.pipeline.run", "Run a pipeline until it is stopped."),
    "list": Command("odradek.cli.pipeline.list", "List the pipelines that were run here, and their states."),
    "status": Command("odradek.cli.pipeline.status", "Show the progress of a pipeline."),
    "stop": Command("odradek.cli.pipeline.stop", "Stop a pipeline that runs in another terminal."),
}

command = LazyGroup("pipeline", lazy=_COMMANDS, help="Turn topics into tables and other topics on Spark.")
