"""`odradek bench`: how fast a cluster is, seen through our own clients, as Kafka's perf tools ask it."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "produce": Command("odradek.cli.bench.produce", "How fast records are taken, and how soon acknowledged."),
    "consume": Command("odradek.cli.bench.consume", "How fast records are read, and how soon the first."),
    "latency": Command("odradek.cli.bench.latency", "How long one record takes there, and to a consumer."),
}

command = LazyGroup("bench", lazy=_COMMANDS, help="Measure a cluster with our own clients.")
