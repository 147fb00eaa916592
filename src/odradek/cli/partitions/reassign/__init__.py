"""`odradek partitions reassign`: replicas moved between brokers, as kafka-reassign-partitions.sh."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_PACKAGE = "odradek.cli.partitions.reassign"
_COMMANDS = {
    "generate": Command(f"{_PACKAGE}.generate", "Propose a plan that spreads topics over brokers."),
    "execute": Command(f"{_PACKAGE}.execute", "Start the reassignments of a plan."),
    "verify": Command(f"{_PACKAGE}.verify", "Show what is done of a plan; at its end, remove the throttles."),
    "cancel": Command(f"{_PACKAGE}.cancel", "Cancel the reassignments of a plan."),
    "list": Command(f"{_PACKAGE}.list", "List the reassignments under way."),
}

command = LazyGroup(
    "reassign", lazy=_COMMANDS, help="Move replicas between brokers: generate, execute, verify, cancel."
)
