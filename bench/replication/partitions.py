"""What partitions cost a cluster of three brokers as they grow from 10 to 10,000: creation, metadata, memory,
start and election.

    python bench/replication/partitions.py [--counts 10,100,1000,10000] [--quick]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import click
from confluent_kafka.cimpl import NewTopic

sys.path.insert(0, str(Path(__file__).resolve().parent))
from clusters import EMBEDDED, KAFKA, cluster

from faults.cluster.brokers import Brokers, wait_for
from processes import allow_many_files, resident_bytes
from progress import CONSOLE
from results import CACHE, MB, PLOTS, RESULTS, BenchResult, circumstances, markdown_table, save

TOPIC = "many"
COLUMNS = {
    "create s": "creation until every replica is in sync",
    "metadata ms": "a metadata request for everything",
    "memory MB": "resident memory of one broker, mean of three",
    "election s": "kill -9 of a broker until every partition is led by another",
    "start s": "start of that broker until every replica is in sync",
}
SECONDS = 600


def measure(name: str, count: int, directory: Path) -> dict[str, float]:
    """The figures for one number of partitions, on a fresh cluster."""
    with cluster(name, directory) as brokers:
        began = time.monotonic()
        request = NewTopic(TOPIC, num_partitions=count, replication_factor=3)
        admin = brokers.admin
        admin.create_topics([request], request_timeout=SECONDS)[TOPIC].result(SECONDS)
        brokers.wait_in_sync([TOPIC], SECONDS)
        created = time.monotonic() - began
        metadata = statistics.median(_metadata_ms(brokers) for _ in range(9))
        memory = statistics.mean(resident_bytes(node.pid) for node in brokers.nodes.values()) / MB
        victim = brokers.leader(TOPIC, 0)
        killed = time.monotonic()
        brokers.kill(victim)
        wait_for(lambda: _is_led_without(brokers, victim), "all partitions are led by others", SECONDS)
        election = time.monotonic() - killed
        started = time.monotonic()
        brokers.start(victim)
        brokers.wait_in_sync([TOPIC], SECONDS)
        start = time.monotonic() - started
    return dict(zip(COLUMNS, (created, metadata, memory, election, start), strict=True))


def _metadata_ms(brokers: Brokers) -> float:
    began = time.perf_counter()
    brokers.metadata(60)
    return (time.perf_counter() - began) * 1000


def _is_led_without(brokers: Brokers, victim: int) -> bool:
    partitions = brokers.metadata(60).topics[TOPIC].partitions.values()
    return all(partition.leader not in (-1, victim) for partition in partitions)


def markdown(outcome: BenchResult) -> str:
    """A row for each cluster and number of partitions."""
    rows = [
        (name, count, *(f"{figures[column]:.3g}" for column in COLUMNS))
        for name, counts in outcome.items()
        for count, figures in counts.items()
    ]
    return markdown_table(("cluster", "partitions", *COLUMNS), rows)


@click.command()
@click.option("--counts", default="10,100,1000,10000", show_default=True)
@click.option("--kafka/--no-kafka", default=True, show_default=True)
@click.option("--quick", is_flag=True, help="A sanity check: no real figures.")
def main(counts: str, kafka: bool, quick: bool) -> None:
    """Measure, print, keep and draw."""
    allow_many_files()
    numbers = [int(count) for count in counts.split(",")]
    outcome: BenchResult = {}
    with tempfile.TemporaryDirectory(prefix="odradek-partitions-") as made:
        for count in numbers:
            for name in (EMBEDDED, KAFKA) if kafka else (EMBEDDED,):
                figures = measure(name, count, Path(made) / "cluster")
                CONSOLE.print(f"{name}, {count}: {figures}")
                outcome.setdefault(name, {})[str(count)] = figures
    print(markdown(outcome))
    results, plots = (CACHE, CACHE) if quick else (RESULTS, PLOTS)
    save(results / "partitions.json", outcome | {"circumstances": circumstances(("confluent-kafka",))})
    from charts import curves

    for column, meaning in COLUMNS.items():
        series = {
            name.partition(",")[0]: (
                [float(count) for count in rows],
                [figures[column] for figures in rows.values()],
            )
            for name, rows in outcome.items()
        }
        path = plots / f"replication-partitions-{column.split()[0]}.png"
        curves(
            path,
            meaning,
            series,
            x_label="partitions",
            y_label=column,
            is_logarithmic=True,
            ticks={float(number): f"{number:,}" for number in numbers},
        )


if __name__ == "__main__":
    main()
