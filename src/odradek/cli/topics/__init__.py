"""`odradek topics`: create, list, describe, alter and delete topics, as kafka-topics.sh does."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "create": Command("odradek.cli.topics.create", "Create topics."),
    "list": Command("odradek.cli.topics.list", "List topics."),
    "describe": Command(
        "odradek.cli.topics.describe", "Partitions, leaders, replicas and settings of topics."
    ),
    "alter": Command("odradek.cli.topics.alter", "Add partitions to topics."),
    "delete": Command("odradek.cli.topics.delete", "Delete topics with all their records."),
}

command = LazyGroup("topics", lazy=_COMMANDS, help="Create, list, describe, alter and delete topics.")
