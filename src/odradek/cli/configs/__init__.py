"""`odradek configs`: settings of topics, brokers and groups, as kafka-configs.sh shows them."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "describe": Command("odradek.cli.configs.describe", "Show settings of a topic, a broker or a group."),
    "alter": Command("odradek.cli.configs.alter", "Change settings while the cluster runs."),
    "docs": Command("odradek.cli.configs.docs", "Explain settings. No broker is needed."),
}

command = LazyGroup(
    "configs", lazy=_COMMANDS, help="Show, change and explain settings of topics, brokers and groups."
)
