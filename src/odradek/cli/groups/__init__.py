"""`odradek groups`: see who reads what and how far, move offsets, delete groups."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "list": Command("odradek.cli.groups.list", "List groups."),
    "describe": Command("odradek.cli.groups.describe", "Offsets and lag, members, or the state of groups."),
    "reset-offsets": Command("odradek.cli.groups.reset_offsets", "Move a group to other offsets."),
    "delete": Command("odradek.cli.groups.delete", "Delete groups with their offsets."),
    "delete-offsets": Command("odradek.cli.groups.delete_offsets", "Forget offsets of a group."),
}

command = LazyGroup(
    "groups", lazy=_COMMANDS, help="See who reads what and how far, move offsets, delete groups."
)
