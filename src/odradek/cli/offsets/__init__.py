"""`odradek offsets`: look up offsets, and delete the records before an offset."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "get": Command("odradek.cli.offsets.get", "Print offsets of partitions: latest, earliest, by time."),
    "delete-records": Command("odradek.cli.offsets.delete_records", "Delete the records before an offset."),
}

command = LazyGroup(
    "offsets", lazy=_COMMANDS, help="Look up offsets, and delete the records before an offset."
)
