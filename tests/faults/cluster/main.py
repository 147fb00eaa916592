"""Long fault runs over clusters of processes: `make faults`.

    python -m faults.cluster.main --store embedded --store zookeeper3 --brokers 3 --faults 40 --seed 1

The same options with the seed repeat the runs; their histories, logs and reports stay in --directory.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from faults.cluster.brokers import FAULT_SETTINGS, Brokers, kafka_brokers, odradek_brokers
from faults.cluster.fault_run import FaultRun, Plan, Result, schedule
from faults.cluster.kinds import KINDS, ZOOKEEPER_KINDS
from faults.cluster.zookeepers import ZooKeepers

IMBALANCE_CHECK_SECONDS = 20
"""Instead of 300: each run waits until the preferred replicas lead again."""
STORES = ("embedded", "zookeeper", "zookeeper3", "kafka")


@click.command()
@click.option(
    "--store",
    "stores",
    type=click.Choice(STORES),
    multiple=True,
    default=("embedded", "zookeeper", "zookeeper3"),
    show_default=True,
)
@click.option("--brokers", "broker_counts", type=int, multiple=True, default=(3, 5), show_default=True)
@click.option("--faults", "fault_count", type=int, default=8, show_default=True, help="Faults in each run.")
@click.option("--kind", "kinds", multiple=True, help="Only these kinds of faults.")
@click.option("--seed", type=int, default=None, help="The time by default.")
@click.option("--rate", type=int, default=100, show_default=True, help="Records a second and producer.")
@click.option("--replicas", type=int, default=3, show_default=True)
@click.option(
    "--min-insync-replicas", "min_insync", type=int, multiple=True, default=(2, 1), show_default=True
)
@click.option("--java/--no-java", default=True, show_default=True, help="Java's verifiable clients too.")
@click.option(
    "--directory", type=click.Path(path_type=Path), default=None, help="Kept; temporary by default."
)
def main(
    stores: tuple[str, ...],
    broker_counts: tuple[int, ...],
    fault_count: int,
    kinds: tuple[str, ...],
    seed: int | None,
    rate: int,
    replicas: int,
    min_insync: tuple[int, ...],
    java: bool,
    directory: Path | None,
) -> None:
    """Run faults against clusters of broker processes and check what clients saw."""
    console = Console(soft_wrap=True)
    first_seed = int(time.time()) if seed is None else seed
    run_directory = directory or Path(tempfile.mkdtemp(prefix="odradek-faults-"))
    good = True
    for store, least, (number, count) in product(stores, min_insync, enumerate(broker_counts)):
        faults = schedule(first_seed, fault_count * len(broker_counts), kinds or kinds_for(store, least))
        plan = Plan(
            first_seed,
            part(faults, number, fault_count),
            replicas=min(replicas, count),
            rate=rate,
            min_insync_replicas=min(least, replicas, count),
            java=java,
            is_kafka=store == "kafka",
        )
        place = run_directory / f"{store}-{count}-{least}-{first_seed}"
        shutil.rmtree(place, ignore_errors=True)
        result = run_store(store, count, plan, place, console)
        good = good and result.is_good
        report = [f"{store}, {count} brokers, RF {plan.replicas}, min ISR {plan.min_insync_replicas}"]
        report += result.lines()
        (place / "report.txt").write_text("\n".join(report) + "\n")
        for line in report:
            console.print(line, highlight=False)
    console.print(f"histories, logs and reports: {run_directory}")
    sys.exit(0 if good else 1)


def part(faults: Sequence[str], number: int, count: int) -> Sequence[str]:
    """The faults of one run: those of a store are spread over its clusters of different sizes."""
    return faults[number * count : (number + 1) * count]


def kinds_for(store: str, min_insync_replicas: int) -> list[str]:
    """What nothing may be lost by: with min ISR 1, a wiped disk may have held the only acknowledged copy."""
    kinds = [kind for kind in KINDS if not kind.startswith("wipe") or min_insync_replicas > 1]
    if store == "zookeeper":
        return [*kinds, "ZooKeeper away"]
    return [*kinds, *(ZOOKEEPER_KINDS if store == "zookeeper3" else ())]


def run_store(store: str, count: int, plan: Plan, place: Path, console: Console) -> Result:
    """One run on one kind of cluster; nothing of it runs afterwards."""
    zookeepers = None
    if store.startswith("zookeeper"):
        zookeepers = ZooKeepers(place, 3 if store == "zookeeper3" else 1)
    brokers: Brokers | None = None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console) as progress:
            task = progress.add_task(f"{store}, {count} brokers", total=len(plan.faults))

            def said(line: str) -> None:
                progress.console.print(f"  {line}", highlight=False)
                progress.advance(task)

            coordination = ""
            if zookeepers is not None:
                zookeepers.start_all()
                coordination = f"zookeeper://{zookeepers.connect}"
            make = kafka_brokers if store == "kafka" else odradek_brokers
            interval = {"leader_imbalance_check_interval_seconds": str(IMBALANCE_CHECK_SECONDS)}
            settings = FAULT_SETTINGS | interval
            if store != "kafka":
                settings["coordination"] = coordination
            brokers = make(place, count, **settings)
            brokers.start_all()
            return FaultRun(brokers, plan, place, zookeepers, said).run()
    finally:
        if brokers is not None:
            brokers.end()
        if zookeepers is not None:
            zookeepers.end()


if __name__ == "__main__":
    main()
