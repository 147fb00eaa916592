"""`odradek partitions`: replicas moved between brokers, and leaders elected."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "reassign": Command("odradek.cli.partitions.reassign", "Move replicas between brokers and directories."),
    "elect-leaders": Command("odradek.cli.partitions.elect_leaders", "Elect leaders of partitions."),
}

command = LazyGroup("partitions", lazy=_COMMANDS, help="Move replicas between brokers, and elect leaders.")
