"""The format `odradek` beside Spark's own Kafka source: one session, alternating, warm.

Runs itself again in .venv-spark, where PySpark is. `python bench/spark/run.py [ROWS [ROUNDS [JOBS]]]`: rows/s
and rows a CPU second, of Spark and of the broker; the figures go to bench/results/spark.json.
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

BENCH = Path(__file__).resolve().parents[1]
ROOT = BENCH.parent
SPARK_PYTHON = ROOT / ".venv-spark" / "bin" / "python"
PARTITIONS = 4
WARM_ROUNDS = 1


def main(rows: int, rounds: int, only: str = "") -> None:
    sys.path[:0] = [str(BENCH), str(ROOT / "tools"), str(Path(__file__).parent)]
    import jobs
    from rich.console import Console

    import results
    from odradek.testing import Cluster

    console = Console(width=120)
    outcome = {"circumstances": results.circumstances(["pyspark", "pyarrow"]), "rows": rows, "jobs": {}}
    with Cluster({"log.retention.ms": -1}, process=True) as cluster, a_session() as spark:
        place = jobs.Place(spark, cluster.bootstrap, cluster.data_dir, Path(tempfile.mkdtemp()), rows)
        jobs.fill(place, PARTITIONS)
        for name, job in jobs.JOBS.items():
            if only and name not in only.split("; "):
                continue
            found = measure(job, place, rounds)
            outcome["jobs"][name] = found
            console.print(name, {source: line(rows, figures) for source, figures in found.items()})
            results.save(results.RESULTS / "spark.json", outcome)
        outcome["bytes to the JVM"] = jobs.transferred(place)
        console.print(outcome["bytes to the JVM"])
        results.save(results.RESULTS / "spark.json", outcome)


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


def measure(job: dict[str, Callable[..., object]], place: object, rounds: int) -> dict[str, Figures]:
    """Seconds and CPU seconds of each source, round by round; every other round in reverse."""
    found: dict[str, Figures] = {source: {"seconds": [], "spark cpu": [], "broker cpu": []} for source in job}
    for number in range(WARM_ROUNDS + rounds):
        for source in list(job) if number % 2 == 0 else list(reversed(job)):
            before, begin = cpu_seconds(), time.perf_counter()
            job[source](place)
            taken, after = time.perf_counter() - begin, cpu_seconds()
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


def line(rows: int, figures: Figures) -> str:
    """Medians."""
    from statistics import median

    seconds, cpu = median(figures["seconds"]), median(figures["spark cpu"])
    return f"{rows / seconds:,.0f} rows/s, {rows / cpu:,.0f} rows a CPU second of Spark"


if __name__ == "__main__":
    if importlib.util.find_spec("pyspark") is None:
        sys.exit(subprocess.run([str(SPARK_PYTHON), *sys.argv], check=False).returncode)
    rows, rounds, only = [*sys.argv[1:], *["2000000", "3", ""][len(sys.argv) - 1 :]]
    main(int(rows), int(rounds), only)
