"""The streaming sink, exactly once in both forms, beside the official connector's, which is at least once.

Runs itself again in .venv-spark. `python bench/spark/exactly_once.py [ROWS [ROUNDS [BATCHES]]]`: the same
rows from a topic into a topic, alternating, in micro-batches of half a million: rows/s and rows a CPU second.
Then BATCHES micro-batches of 100 rows: milliseconds of a micro-batch, and how many more than at least once.
The figures go to bench/results/spark_exactly_once.json. The defaults are 2000000 3 40;
`exactly_once.py 20000 1 5` shows that it runs.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from place import Place
    from rich.table import Table

BENCH = Path(__file__).resolve().parents[1]
ROOT = BENCH.parent
SPARK_PYTHON = ROOT / ".venv-spark" / "bin" / "python"
PARTITIONS = 4
FEW = "few"
SMALL_BATCH_ROWS = 100
MEASURED_ROWS = 1_000_000
OFFICIAL, AT_LEAST_ONCE = "kafka", "odradek, at least once"
DATA_SOURCE, FOREACH_BATCH = "odradek, format", "odradek, foreachBatch"
SINKS = (OFFICIAL, AT_LEAST_ONCE, DATA_SOURCE, FOREACH_BATCH)
AIM = 0.8
"""Rows/s of ours, exactly once, as a multiple of the official connector's."""


def main(rows: int, rounds: int, batches: int) -> None:
    sys.path[:0] = [str(Path(__file__).parent), str(BENCH), str(ROOT / "tools")]
    import place as places
    from rich.console import Console

    import results
    import run
    from odradek.testing import Cluster

    console = Console(width=120)
    kept = (results.RESULTS if rows >= MEASURED_ROWS else results.CACHE) / "spark_exactly_once.json"
    outcome: dict[str, Any] = {"circumstances": results.circumstances(["pyspark", "pyarrow"]), "rows": rows}
    with (
        Cluster({"log.retention.ms": -1}, process=True) as cluster,
        run.a_session() as spark,
        run.a_directory() as directory,
    ):
        place = places.Place(spark, cluster.bootstrap, cluster.data_dir, directory, rows)
        console.print(f"writing {rows:,} rows")
        places.fill(place.bootstrap, rows, PARTITIONS)
        large = {sink: partial(stream, sink, places.SOURCE, places.ROWS_A_BATCH) for sink in SINKS}
        outcome["sinks"] = run.measure(
            large, place, rounds, lambda text: console.print(f"1 of 2, {rows:,} rows:", text)
        )
        results.save(kept, outcome)
        places.fill(place.bootstrap, SMALL_BATCH_ROWS * (batches + 1), PARTITIONS, FEW)
        outcome["milliseconds of a micro-batch"] = small_batches(
            place, rounds, lambda text: console.print(f"2 of 2, {batches} micro-batches:", text)
        )
        results.save(kept, outcome)
    console.print(throughput(outcome["sinks"], rows))
    console.print(overhead(outcome["milliseconds of a micro-batch"]))


def stream(sink: str, source: str, limit: int, place: Place) -> list[float]:
    """All rows of a topic into a new topic by one sink; the milliseconds of each micro-batch."""
    from odradek import Admin
    from odradek.spark import exactly_once

    servers = {"kafka.bootstrap.servers": place.bootstrap}
    topic, state = place.new_topic(), place.directory / "state"
    reader = place.spark.readStream.format("kafka").options(**servers).option("subscribe", source)
    reader = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", limit)
    frame = reader.load().select("key", "value")
    writer = frame.writeStream.queryName(topic).option("checkpointLocation", str(state))
    if sink == FOREACH_BATCH:
        writer = writer.foreachBatch(exactly_once({**servers, "topic": topic}))
    else:
        writer = writer.format(sink.partition(",")[0]).options(**servers).option("topic", topic)
        if sink == AT_LEAST_ONCE:
            writer = writer.option("delivery", "at-least-once")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [one for one in query.recentProgress if one.numInputRows]
    shutil.rmtree(state)
    with Admin(bootstrap_servers=place.bootstrap) as admin:
        admin.delete_topic(topic)
    return [float(one.durationMs["addBatch"]) for one in progress]


def small_batches(place: Place, rounds: int, report: Callable[[str], None]) -> dict[str, list[float]]:
    """The median micro-batch of each round, without the first, which starts Python workers."""
    found: dict[str, list[float]] = {sink: [] for sink in SINKS}
    for number in range(rounds):
        for sink in SINKS if number % 2 == 0 else reversed(SINKS):
            taken = median(stream(sink, FEW, SMALL_BATCH_ROWS, place)[1:])
            report(f"round {number + 1}, {sink}: {taken:.0f} ms")
            found[sink].append(taken)
    return found


def throughput(measured: dict[str, Any], rows: int) -> Table:
    from rich.table import Table

    from run import cpu

    found = Table("sink", "rows/s", "of the official one's", "by CPU second", "aim")
    official = measured[OFFICIAL]
    for sink, figures in measured.items():
        times = median(official["seconds"]) / median(figures["seconds"])
        aim = f"{AIM}" if sink in (DATA_SOURCE, FOREACH_BATCH) else ""
        speed = f"{rows / median(figures['seconds']):,.0f}"
        found.add_row(sink, speed, f"{times:.2f}", f"{cpu(official) / cpu(figures):.2f}", aim)
    return found


def overhead(measured: dict[str, list[float]]) -> Table:
    from rich.table import Table

    found = Table("sink", "ms of a micro-batch", "more than at least once")
    base = median(measured[AT_LEAST_ONCE])
    for sink, taken in measured.items():
        found.add_row(sink, f"{median(taken):.0f}", f"{median(taken) - base:+.0f}")
    return found


if __name__ == "__main__":
    if importlib.util.find_spec("pyspark") is None:
        sys.exit(subprocess.run([str(SPARK_PYTHON), *sys.argv], check=False).returncode)
    rows, rounds, batches = [*sys.argv[1:], *["2000000", "3", "40"][len(sys.argv) - 1 :]]
    main(int(rows), int(rounds), int(batches))
