"""`odradek log`: look at, check, repair and fork log directories, without a broker."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "dump": Command("odradek.cli.log.dump", "Print segments and indexes as Kafka's DumpLogSegments does."),
    "verify": Command("odradek.cli.log.verify", "Scan everything and say what is damaged."),
    "repair": Command(
        "odradek.cli.log.repair", "Cut a corrupt partition at its first bad batch; keep the rest."
    ),
    "fork": Command("odradek.cli.log.fork", "Snapshot a log directory by hard links."),
}

command = LazyGroup(
    "log",
    lazy=_COMMANDS,
    help="Look at, check, repair and fork log directories, ours or Kafka's. No broker is needed.",
)
