"""Import times of `odradek` and its packages, in fresh interpreters, compared with an empty interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

STATEMENTS = {
    "nothing": "pass",
    "odradek": "import odradek",
    "odradek.records.kernels.record_check": "import odradek.records.kernels.record_check",
    "odradek.protocol.messages.ProduceRequest": "from odradek.protocol.messages import ProduceRequest",
    "confluent_kafka": "import confluent_kafka",
    "aiokafka": "import aiokafka",
    "kafka (kafka-python)": "import kafka",
}


def seconds(statement: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - started


def main(rounds: int = 11) -> None:
    taken: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(rounds):
        for name, statement in STATEMENTS.items():
            taken[name].append(seconds(statement))
    empty = statistics.median(taken["nothing"])
    table = Table(title="Import, fresh interpreter, median", title_justify="left")
    table.add_column("import")
    table.add_column("ms beyond an empty interpreter", justify="right")
    for name, values in taken.items():
        table.add_row(name, f"{(statistics.median(values) - empty) * 1e3:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
