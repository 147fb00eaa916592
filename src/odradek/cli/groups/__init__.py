"""`odradek groups`: describe groups, reset offsets, delete groups."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "list": Command("odradek.cli.groups.list", "List groups."),
    "describe": Command("odradek.cli.groups.describe", "Offsets and lag, members, or the state of groups."),
    "reset-offsets": Command("odradek.cli.groups.reset_offsets", "Reset the offsets of a group."),
    "delete": Command("odradek.cli.groups.delete", "Delete groups with their offsets."),
    "delete-offsets": Command("odradek.cli.groups.delete_offsets", "Delete committed offsets of a group."),
}

command = LazyGroup("groups", lazy=_COMMANDS, help="Describe groups, reset offsets, delete groups.")
