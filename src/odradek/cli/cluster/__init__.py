"""`odradek cluster`: who is in a cluster, and what its brokers serve and keep."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "id": Command("odradek.cli.cluster.id", "Print the id of the cluster."),
    "describe": Command("odradek.cli.cluster.describe", "List the brokers."),
    "log-dirs": Command("odradek.cli.cluster.log_dirs", "Show the sizes of partitions on disk."),
    "api-versions": Command("odradek.cli.cluster.api_versions", "Show what the brokers can be asked."),
}

command = LazyGroup(
    "cluster", lazy=_COMMANDS, help="See who is in a cluster, and what its brokers serve and keep."
)
