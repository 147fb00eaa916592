"""`odradek log`: dump, verify, repair and fork log directories, without a broker."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "dump": Command("odradek.cli.log.dump", "Print segments and indexes as Kafka's DumpLogSegments does."),
    "verify": Command("odradek.cli.log.verify", "Scan log directories and report damage."),
    "repair": Command(
        "odradek.cli.log.repair", "Cut a corrupt partition at its first bad batch; keep the rest."
    ),
    "fork": Command("odradek.cli.log.fork", "Snapshot a log directory by hard links."),
}

command = LazyGroup(
    "log",
    lazy=_COMMANDS,
    help="Dump, verify, repair and fork log directories, ours or Kafka's. No broker is needed.",
)
