"""A million records copied by Kafka's TransactionalMessageCopier under kills: a part of `make faults`.

    python -m faults.copier.main --records 1000000 --seed 1

A run is repeated with its seed and settings; the logs of brokers and copiers stay in --directory.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console

from faults.cluster.brokers import FAULT_SETTINGS, kafka_brokers, odradek_brokers
from faults.copier.copy_run import CopyRun, Plan

SETTINGS = FAULT_SETTINGS | {"transaction_state_log_num_partitions": "6"}


@click.command()
@click.option("--records", type=int, default=1_000_000, show_default=True)
@click.option("--partitions", type=int, default=4, show_default=True, help="Each has a copier of its own.")
@click.option("--transaction-size", type=int, default=500, show_default=True)
@click.option("--seed", type=int, default=None, help="The time by default.")
@click.option("--kafka", "on_kafka", is_flag=True, help="The brokers are Apache Kafka's.")
@click.option(
    "--directory", type=click.Path(path_type=Path), default=None, help="Kept; temporary by default."
)
def main(
    records: int,
    partitions: int,
    transaction_size: int,
    seed: int | None,
    on_kafka: bool,
    directory: Path | None,
) -> None:
    """Copy records in transactions while brokers and copiers are killed, and compare."""
    console = Console(soft_wrap=True)
    place = directory or Path(tempfile.mkdtemp(prefix="odradek-copier-"))
    plan = Plan(int(time.time()) if seed is None else seed, records, partitions, transaction_size)
    console.print(f"seed {plan.seed}, logs in {place}", highlight=False)
    brokers = (kafka_brokers if on_kafka else odradek_brokers)(place, 3, **SETTINGS)
    try:
        brokers.start_all()
        result = CopyRun(brokers, plan, place, lambda line: console.print(f"  {line}", highlight=False)).run()
    finally:
        brokers.end()
    for line in result.lines():
        console.print(line, highlight=False)
    sys.exit(1 if result.differences else 0)


if __name__ == "__main__":
    main()
