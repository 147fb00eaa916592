"""`odradek bench`: measures a cluster with odradek's clients, like Kafka's perf tools."""

from __future__ import annotations

from odradek.cli.lazy import Command, LazyGroup

_COMMANDS = {
    "produce": Command(
        "odradek.cli.bench.produce", "Measure producer throughput and acknowledgement latency."
    ),
    "consume": Command("odradek.cli.bench.consume", "Measure consumer throughput and time to first record."),
    "latency": Command("odradek.cli.bench.latency", "Measure send latency and end-to-end latency."),
}

command = LazyGroup("bench", lazy=_COMMANDS, help="Measure a cluster with odradek's clients.")
