"""Replication, RF 3 and acks=all, three brokers here beside three of Apache Kafka: rate, CPU, round trip.

Each row is sent to both clusters in turn, in changing order, by ProducerPerformance; the other cluster
stands still meanwhile. CPU is that of the three brokers together, from the start of the client until its end,
per gigabyte of record values (counted once, though each is stored three times). The round trip is that of a
single record with nothing else in flight, by confluent-kafka with linger.ms=0.

    python bench/replication/throughput.py [--rounds 3] [--quick]
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).resolve().parent))
from clusters import EMBEDDED, KAFKA, cluster
from load import CLIENT_SECONDS, STEADY_STATE, write_payloads

from brokers import PEERS
from faults.cluster.brokers import Brokers
from harness import alternate
from processes import precise_cpu_seconds
from progress import CONSOLE
from results import (
    CACHE,
    GB,
    PLOTS,
    RESULTS,
    BenchResult,
    circumstances,
    geometric_mean,
    markdown_table,
    save,
)

RECORDS = {100: 1_000_000, 1000: 200_000}
QUICK_RECORDS = {100: 100_000, 1000: 20_000}
ROUND_TRIPS, QUICK_ROUND_TRIPS = 5_000, 300
# Whoever stands still while the other is measured is not taken for dead.
PATIENT = {
    EMBEDDED: {
        "zookeeper_session_timeout_ms": "120000",
        "replica_lag_time_max_ms": "120000",
        "replica_socket_timeout_ms": "120000",
    },
    KAFKA: {
        "broker_session_timeout_ms": "120000",
        "replica_lag_time_max_ms": "120000",
        "replica_socket_timeout_ms": "120000",
        "controller_quorum_fetch_timeout_ms": "120000",
    },
}


@dataclass(frozen=True)
class Row:
    record_bytes: int
    partitions: int

    @property
    def name(self) -> str:
        return f"{self.record_bytes} B, {self.partitions} partition{'s' if self.partitions > 1 else ''}"


ROWS = [Row(size, partitions) for size in (100, 1000) for partitions in (1, 6)]


@contextmanager
def only(measured: Brokers, clusters: dict[str, Brokers]) -> Iterator[None]:
    """The brokers of the other clusters are stopped."""
    pids = [node.pid for one in clusters.values() if one is not measured for node in one.nodes.values()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(0.3)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def cpu_seconds(brokers: Brokers) -> float:
    return sum(precise_cpu_seconds(node.pid) for node in brokers.nodes.values())


def produce(brokers: Brokers, topic: str, row: Row, records: int, payloads: Path) -> dict[str, float]:
    """Records a second in the steady state, and CPU seconds per gigabyte."""
    command = [
        *(str(PEERS / "run-class"), "ProducerPerformance", "--topic", topic, "--throughput", "-1"),
        *("--num-records", str(records), "--warmup-records", str(records // 4)),
        *("--payload-file", str(payloads), "--bootstrap-server", brokers.bootstrap),
        *("--reporting-interval", str(CLIENT_SECONDS * 1000), "--command-property", "acks=all"),
        *("batch.size=65536", "linger.ms=5"),
    ]
    began = cpu_seconds(brokers)
    done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_SECONDS, check=False)
    found = STEADY_STATE.search(done.stdout)
    if found is None:
        raise RuntimeError(f"ProducerPerformance failed:\n{done.stdout}\n{done.stderr}")
    gigabytes = records * row.record_bytes / GB
    return {"rate": float(found[2]), "cpu": (cpu_seconds(brokers) - began) / gigabytes}


def round_trips(brokers: Brokers, topic: str, count: int) -> list[float]:
    """Milliseconds of single records with acks=all."""
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "acks": "all", "linger.ms": 0})
    times = []
    for _ in range(count + count // 10):
        answered: list[object] = []
        began = time.perf_counter()
        producer.produce(
            topic, b"x" * 100, partition=0, on_delivery=lambda error, _, kept=answered: kept.append(error)
        )
        while not answered:
            producer.poll(30)
        assert answered == [None], answered
        times.append((time.perf_counter() - began) * 1000)
    return times[count // 10 :]


def measure(clusters: dict[str, Brokers], rounds: int, quick: bool, directory: Path) -> BenchResult:
    counts = QUICK_RECORDS if quick else RECORDS
    payloads = {size: write_payloads(directory, size) for size in counts}
    outcome: BenchResult = {"rows": {}, "round trips": {name: {"p50": [], "p99": []} for name in clusters}}
    for row in ROWS:
        kept = outcome["rows"][row.name] = {name: {"rate": [], "cpu": []} for name in clusters}
        for number in range(rounds + 1):
            for name in alternate(list(clusters), number):
                topic = f"t{row.record_bytes}-{row.partitions}-{number}"
                with only(clusters[name], clusters):
                    clusters[name].create_topic(topic, row.partitions, 3)
                    figures = produce(
                        clusters[name], topic, row, counts[row.record_bytes], payloads[row.record_bytes]
                    )
                    clusters[name].admin.delete_topics([topic])[topic].result(30)
                CONSOLE.print(f"{row.name}, {name}, round {number}: {figures}")
                if number:  # the first warms up
                    for what, value in figures.items():
                        kept[name][what].append(value)
    for brokers in clusters.values():
        with only(brokers, clusters):
            brokers.create_topic("single", 1, 3)
    for number in range(rounds + 1):
        for name in alternate(list(clusters), number):
            with only(clusters[name], clusters):
                times = round_trips(clusters[name], "single", QUICK_ROUND_TRIPS if quick else ROUND_TRIPS)
            points = statistics.quantiles(times, n=100)
            CONSOLE.print(f"round trip, {name}: p50 {points[49]:.3f} ms, p99 {points[98]:.3f} ms")
            if number:
                outcome["round trips"][name]["p50"].append(points[49])
                outcome["round trips"][name]["p99"].append(points[98])
    return outcome


def markdown(outcome: BenchResult) -> str:
    """Medians and ratios; the last line has the geometric means."""
    lines, ratios = [], {"rate": [], "cpu": []}
    for name, kept in outcome["rows"].items():
        ours, theirs = (
            {what: statistics.median(values) for what, values in kept[who].items()}
            for who in (EMBEDDED, KAFKA)
        )
        for what, found in ratios.items():
            found.append(ours[what] / theirs[what])
        lines.append(
            (
                name,
                f"{ours['rate']:,.0f}",
                f"{theirs['rate']:,.0f}",
                f"{ratios['rate'][-1]:.2f}",
                f"{ours['cpu']:.1f}",
                f"{theirs['cpu']:.1f}",
                f"{ratios['cpu'][-1]:.2f}",
            )
        )
    means = [f"{geometric_mean(found):.2f}" for found in ratios.values()]
    lines.append(("geometric mean", "", "", means[0], "", "", means[1]))
    head = ("row", "records/s", "Kafka's", "x", "CPU s/GB", "Kafka's", "x")
    trips = [
        (what, *(f"{statistics.median(outcome['round trips'][who][what]):.3f}" for who in (EMBEDDED, KAFKA)))
        for what in ("p50", "p99")
    ]
    return (
        markdown_table(head, lines)
        + "\n\n"
        + markdown_table(("round trip, acks=all", "odradek ms", "Kafka ms"), trips)
    )


@click.command()
@click.option("--rounds", default=3, show_default=True)
@click.option("--quick", is_flag=True, help="A sanity check: no real figures.")
def main(rounds: int, quick: bool) -> None:
    """Measure, print, keep and draw."""
    with tempfile.TemporaryDirectory(prefix="odradek-replication-") as made:
        directory = Path(made)
        with (
            cluster(EMBEDDED, directory / "odradek", **PATIENT[EMBEDDED]) as ours,
            cluster(KAFKA, directory / "kafka", **PATIENT[KAFKA]) as theirs,
        ):
            outcome = measure({EMBEDDED: ours, KAFKA: theirs}, rounds, quick, directory)
    print(markdown(outcome))
    results, plots = (CACHE, CACHE) if quick else (RESULTS, PLOTS)
    save(results / "replication.json", outcome | {"circumstances": circumstances(("confluent-kafka",))})
    from charts import grouped_bars

    series = {
        short: [statistics.median(kept[who]["rate"]) for kept in outcome["rows"].values()]
        for short, who in (("odradek", EMBEDDED), ("Kafka", KAFKA))
    }
    title = "RF 3, acks=all: records a second"
    grouped_bars(
        plots / "replication-throughput.png", title, list(outcome["rows"]), series, label="records/s"
    )


if __name__ == "__main__":
    main()
