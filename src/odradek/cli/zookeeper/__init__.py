"""`odradek zookeeper`: one ZooKeeper server on this machine, for development."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "start": Command("odradek.cli.zookeeper.start", "Start a server in the background."),
    "stop": Command("odradek.cli.zookeeper.stop", "Stop it."),
}

command = LazyGroup(
    "zookeeper", lazy=_COMMANDS, help="Run one ZooKeeper server on this machine, for development."
)
