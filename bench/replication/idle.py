"""What three idle brokers on the embedded store cost: processor time of all three together.

python bench/replication/idle.py [--seconds 20] [--partitions 30]

Prints the share of one core, of the three brokers and of each; SPEC asks for 5 % at most, together.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import click
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent))
from clusters import EMBEDDED, cluster

from progress import CONSOLE

TOPIC = "idle"
SETTLED_SECONDS = 10
"""After the replicas are in sync: what a broker loads in its first seconds is not counted."""


@click.command()
@click.option("--seconds", type=float, default=20.0, show_default=True, help="How long they are idle.")
@click.option("--partitions", type=int, default=30, show_default=True, help="With three replicas each.")
def main(seconds: float, partitions: int) -> None:
    """Measure three idle brokers."""
    with tempfile.TemporaryDirectory() as directory, cluster(EMBEDDED, Path(directory) / "idle") as brokers:
        brokers.create_topic(TOPIC, partitions, 3)
        brokers.wait_in_sync([TOPIC])
        time.sleep(SETTLED_SECONDS)
        processes = {number: psutil.Process(node.pid) for number, node in brokers.nodes.items()}
        before = {number: _cpu_seconds(process) for number, process in processes.items()}
        began = time.monotonic()
        time.sleep(seconds)
        elapsed = time.monotonic() - began
        shares = {
            number: 100 * (_cpu_seconds(process) - before[number]) / elapsed
            for number, process in processes.items()
        }
    for number, share in shares.items():
        CONSOLE.print(f"broker {number}: {share:.2f} % of a core", highlight=False)
    CONSOLE.print(f"together: {sum(shares.values()):.2f} % of a core in {elapsed:.0f} s", highlight=False)


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main()
