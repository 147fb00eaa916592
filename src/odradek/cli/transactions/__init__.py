"""`odradek transactions`: open transactions, with the columns of kafka-transactions.sh."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "list": Command("odradek.cli.transactions.list", "List transactional ids."),
    "describe": Command("odradek.cli.transactions.describe", "Describe the transaction of one id."),
    "describe-producers": Command(
        "odradek.cli.transactions.describe_producers", "Describe the active producers of a partition."
    ),
    "abort": Command("odradek.cli.transactions.abort", "Abort a hanging transaction in a partition."),
    "find-hanging": Command("odradek.cli.transactions.find_hanging", "Find hanging transactions."),
    "force-terminate": Command(
        "odradek.cli.transactions.force_terminate", "Abort the open transaction of a transactional id."
    ),
}

command = LazyGroup("transactions", lazy=_COMMANDS, help="List, describe and abort transactions.")
