"""`odradek topics`: make, list, describe, grow and delete topics, as kafka-topics.sh does."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "create": Command("odradek.cli.topics.create", "Make topics."),
    "list": Command("odradek.cli.topics.list", "List topics."),
    "describe": Command(
        "odradek.cli.topics.describe", "Partitions, leaders, replicas and settings of topics."
    ),
    "alter": Command("odradek.cli.topics.alter", "Let topics grow."),
    "delete": Command("odradek.cli.topics.delete", "Delete topics with all their records."),
}

command = LazyGroup("topics", lazy=_COMMANDS, help="Make, list, describe, grow and delete topics.")
