"""The format `odradek` beside Spark's own Kafka source: one session, alternating, warm.

Runs itself again in .venv-spark, where PySpark is. `python bench/spark/run.py [ROWS [ROUNDS [JOBS]]]`: rows/s
and rows a CPU second, of Spark and of the broker; the figures go to bench/results/spark.json. The pipeline
has five times ROWS. The defaults are 2000000 3; `run.py 100000 1` shows in two minutes that it runs.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

BENCH = Path(__file__).resolve().parents[1]
ROOT = BENCH.parent
SPARK_PYTHON = ROOT / ".venv-spark" / "bin" / "python"
PARTITIONS = 4
WARM_ROUNDS = 1
MEASURED_ROWS = 1_000_000
"""A run of less only shows that everything runs, and its figures are not kept."""


def main(rows: int, rounds: int, only: str = "") -> None:
    sys.path[:0] = [str(BENCH), str(ROOT / "tools"), str(Path(__file__).parent)]
    import jobs
    import place as places
    from rich.console import Console

    import results
    from odradek.testing import Cluster

    console = Console(width=120)
    kept = (results.RESULTS if rows >= MEASURED_ROWS else results.CACHE) / "spark.json"
    chosen = [name for name in jobs.JOBS if not only or name in only.split("; ")]
    outcome = {"circumstances": results.circumstances(["pyspark", "pyarrow"]), "rows": rows, "jobs": {}}
    settings = {"log.retention.ms": -1}
    with Cluster(settings, process=True) as cluster, a_session() as spark, a_directory() as directory:
        place = places.Place(spark, cluster.bootstrap, cluster.data_dir, directory, rows)
        console.print(f"writing {rows:,} rows")
        places.fill(place.bootstrap, rows, PARTITIONS)
        if jobs.PIPELINE in chosen:
            console.print(f"writing {place.orders:,} orders")
            places.fill_orders(place.bootstrap, place.orders, PARTITIONS)
        for name in chosen:
            heading = f"{chosen.index(name) + 1} of {len(chosen)}: {name}"
            found = measure(
                jobs.JOBS[name], place, rounds, lambda text, heading=heading: console.print(heading, text)
            )
            outcome["jobs"][name] = found | {"rows": jobs.rows_of(name, place)}
            results.save(kept, outcome)
        outcome["bytes to the JVM"] = jobs.transferred(place)
        console.print("Arrow to the JVM, as Spark counts it:", outcome["bytes to the JVM"])
        results.save(kept, outcome)
    console.print(table(outcome["jobs"], jobs.AIMS))


@contextmanager
def a_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as directory:
        yield Path(directory)


@contextmanager
def a_session() -> Iterator[object]:
    """On two cores, with the official connector's jars."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    setup = BENCH / "peers" / "setup-spark"
    jars = subprocess.run([str(setup)], capture_output=True, text=True, check=True).stdout.strip()
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "3g",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


Figures = dict[str, list[float]]


def measure(
    job: dict[str, Callable[..., object]], place: object, rounds: int, report: Callable[[str], None]
) -> dict[str, Figures]:
    """Seconds and CPU seconds of each source, round by round; every other round in reverse."""
    found: dict[str, Figures] = {source: {"seconds": [], "spark cpu": [], "broker cpu": []} for source in job}
    for number in range(WARM_ROUNDS + rounds):
        for source in list(job) if number % 2 == 0 else list(reversed(job)):
            before, begin = cpu_seconds(), time.perf_counter()
            job[source](place)
            taken, after = time.perf_counter() - begin, cpu_seconds()
            report(f"{'warm-up' if number < WARM_ROUNDS else f'round {number}'}, {source}: {taken:.1f} s")
            if number >= WARM_ROUNDS:
                found[source]["seconds"].append(taken)
                found[source]["spark cpu"].append(after[0] - before[0])
                found[source]["broker cpu"].append(after[1] - before[1])
    return found


def cpu_seconds() -> tuple[float, float]:
    """Of Spark (this process, the JVM, all Python workers, also those that have ended), and of the broker."""
    import psutil

    me = psutil.Process()
    own = me.cpu_times()
    spark, broker = own.user + own.system, 0.0
    for child in me.children():
        is_broker = any("odradek.testing" in word for word in child.cmdline())
        for process in [child, *child.children(recursive=True)]:
            try:
                times = process.cpu_times()
            except psutil.Error:  # ended just now; its parent has its time
                continue
            used = times.user + times.system + times.children_user + times.children_system
            if is_broker:
                broker += used
            else:
                spark += used
    return spark, broker


def table(measured: dict[str, Any], aims: dict[str, str]) -> RenderableType:
    """Medians of both, and how many times the official connector's are ours."""
    from rich.table import Table

    found = Table(
        "job", "rows", "official, rows/s", "ours, rows/s", "ours / official", "by CPU second", "aim"
    )
    for name, job in measured.items():
        rows = job["rows"]
        theirs, ours = job["kafka"], job["odradek"]
        found.add_row(
            name,
            f"{rows:,}",
            *(f"{rows / median(one['seconds']):,.0f}" for one in (theirs, ours)),
            f"{median(theirs['seconds']) / median(ours['seconds']):.2f}",
            f"{cpu(theirs) / cpu(ours):.2f}",
            aims[name],
        )
    return found


def cpu(figures: Figures) -> float:
    """CPU seconds of Spark and of the broker."""
    return median(map(sum, zip(figures["spark cpu"], figures["broker cpu"], strict=True)))


if __name__ == "__main__":
    if importlib.util.find_spec("pyspark") is None:
        sys.exit(subprocess.run([str(SPARK_PYTHON), *sys.argv], check=False).returncode)
    rows, rounds, only = [*sys.argv[1:], *["2000000", "3", ""][len(sys.argv) - 1 :]]
    main(int(rows), int(rounds), only)
