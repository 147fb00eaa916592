"""Long runs of kills around exactly once through Spark, a part of `make faults`.

    python -m spark.kills.main --seed 1 --kills 50

The kills are shared out among all combinations of form, brokers and master. In each combination one query
copies a topic, while processes are killed at the hooks; then the topic is read with read_committed, and must
have every row once, in order. A run is repeated with its seed and settings; what it left is in --directory.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import click

from faults.cluster.brokers import (
    FAULT_SETTINGS,
    NEWEST,
    WITH_TRANSACTIONS_V1,
    Brokers,
    kafka_brokers,
    odradek_brokers,
)
from odradek.spark.transactions import hooks
from spark.kills.kill_run import BROKER, COORDINATOR, DRIVER, EXECUTOR, PROCESS, SHUFFLE, Kill
from spark.kills.one_query import DATA_SOURCE, FOREACH_BATCH, FORMS, through_kills
from spark.standalone import LOCAL, standalone_cluster
from spark.transactions.versions import set_transaction_version

OURS, OURS_V1, KAFKA, KAFKA_V1 = CLUSTERS = ("ours", "ours-v1", "kafka", "kafka-v1")
LOCAL_MASTER, STANDALONE = MASTERS = ("local", "standalone")
IN_TASKS = {
    FOREACH_BATCH: (hooks.BEFORE_PRODUCE, hooks.DURING_PRODUCE, hooks.AFTER_PRODUCE),
    DATA_SOURCE: (hooks.BEFORE_PRODUCE, hooks.AFTER_PRODUCE),
}
"""The other places are in the driver, or in the process of its commit."""
Report = Callable[[str], None]


def every_kill(form: str) -> list[Kill]:
    """Each place with each victim that can be met there."""
    found = [
        Kill(point, victim)
        for point, victim in product(hooks.POINTS, (PROCESS, DRIVER, EXECUTOR, COORDINATOR, BROKER))
        if victim != EXECUTOR or point in IN_TASKS[form]
    ]
    return [*found, Kill(hooks.BEFORE_PRODUCE, SHUFFLE)] if form == FOREACH_BATCH else found


EVERY_KIND = len(FORMS) * max(len(every_kill(form)) for form in FORMS)
"""So many kills have each kind in each form."""


def plans(seed: int, kills: int, combinations: list[tuple[str, str, str]]) -> list[list[Kill]]:
    """The kills of each combination: no kind comes again before all others of its form have come."""
    chance = random.Random(seed)
    queues: dict[str, list[Kill]] = {}
    found: list[list[Kill]] = [[] for _ in combinations]
    for number in range(kills):
        place = number % len(combinations)
        form = combinations[place][0]
        queue = queues.setdefault(form, [])
        if not queue:
            queue += every_kill(form)
            chance.shuffle(queue)
        found[place].append(queue.pop())
    return found


@contextmanager
def a_cluster(kind: str, directory: Path) -> Iterator[Brokers]:
    """Three brokers."""
    if kind in (OURS, OURS_V1):
        brokers = odradek_brokers(directory, 3, **FAULT_SETTINGS, min_insync_replicas="2")
    else:
        brokers = kafka_brokers(
            directory,
            3,
            version=NEWEST if kind == KAFKA else WITH_TRANSACTIONS_V1,
            **FAULT_SETTINGS,
            min_insync_replicas="2",
            transaction_state_log_replication_factor="3",
            transaction_state_log_min_isr="2",
        )
    try:
        brokers.start_all()
        if kind == OURS_V1:
            set_transaction_version(brokers.bootstrap, 1)
        yield brokers
    finally:
        brokers.end()


@contextmanager
def a_master(kind: str, directory: Path) -> Iterator[str]:
    if kind == LOCAL_MASTER:
        yield "local[2]"
        return
    with standalone_cluster(directory) as (master, _):
        yield master


def run(form: str, cluster: str, master: str, plan: list[Kill], directory: Path, report: Report) -> bool:
    """One combination; whether all was well."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    try:
        with a_master(master, directory) as url, a_cluster(cluster, directory / "brokers") as brokers:
            done = through_kills(brokers, form, plan, directory, master=url, report=report, environment=LOCAL)
        missing = plan[len(done.done) :]
        assert not missing, f"the query ended before these kills: {missing}"
        assert "has fenced this one" not in done.log(), "a query said that another driver had fenced it"
    except Exception as error:  # each verdict is reported, and the next combination goes on
        report(f"WRONG: {type(error).__name__}: {error}")
        return False
    report(f"well: {len(plan)} kills, {done.starts} starts of the program, every row once and in order")
    return True


@click.command()
@click.option(
    "--kills", type=int, default=EVERY_KIND, show_default=True, help="In all combinations together."
)
@click.option("--seed", type=int, default=None, help="The time by default.")
@click.option("--form", "forms", type=click.Choice(FORMS), multiple=True, default=FORMS)
@click.option("--brokers", "clusters", type=click.Choice(CLUSTERS), multiple=True, default=CLUSTERS)
@click.option("--master", "masters", type=click.Choice(MASTERS), multiple=True, default=MASTERS)
@click.option(
    "--directory", type=click.Path(path_type=Path), default=None, help="Kept; temporary by default."
)
def main(
    kills: int,
    seed: int | None,
    forms: tuple[str, ...],
    clusters: tuple[str, ...],
    masters: tuple[str, ...],
    directory: Path | None,
) -> None:
    """Kill drivers, executors and brokers while queries write, and check that every row is there once."""
    seed = int(time.time()) if seed is None else seed
    root = directory or Path(tempfile.mkdtemp(prefix="odradek-spark-kills-"))
    combinations = [(form, cluster, master) for cluster, master, form in product(clusters, masters, forms)]
    began = time.monotonic()
    click.echo(f"seed {seed}: {kills} kills over {len(combinations)} combinations, in {root}")
    verdicts = []
    for combination, plan in zip(combinations, plans(seed, kills, combinations), strict=True):
        if not plan:
            continue
        form, cluster, master = combination

        def report(text: str, name: str = f"{cluster}, {master}, {form}") -> None:
            click.echo(f"{time.monotonic() - began:6.0f} s  {name}: {text}")

        report(f"{len(plan)} kills")
        verdicts.append(run(form, cluster, master, plan, root / f"{cluster}-{master}-{form}", report))
    wrong = verdicts.count(False)
    click.echo(f"seed {seed}: {len(verdicts) - wrong} of {len(verdicts)} combinations were exactly once")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
