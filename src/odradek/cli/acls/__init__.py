"""`odradek acls`: permissions, with the flags of kafka-acls.sh and the lines it prints."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "add": Command("odradek.cli.acls.add", "Add ACLs."),
    "list": Command("odradek.cli.acls.list", "List ACLs."),
    "remove": Command("odradek.cli.acls.remove", "Remove ACLs."),
}

command = LazyGroup("acls", lazy=_COMMANDS, help="Add, list and remove ACLs.")
