"""`odradek cluster`: brokers, log directories and API versions of a cluster."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "id": Command("odradek.cli.cluster.id", "Print the id of the cluster."),
    "describe": Command("odradek.cli.cluster.describe", "List the brokers."),
    "log-dirs": Command("odradek.cli.cluster.log_dirs", "Show the sizes of partitions on disk."),
    "api-versions": Command("odradek.cli.cluster.api_versions", "Show the API versions of the brokers."),
}

command = LazyGroup(
    "cluster", lazy=_COMMANDS, help="Show the brokers, log directories and API versions of a cluster."
)
