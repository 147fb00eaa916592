"""Resident memory, ours beside Apache Kafka's: idle for a minute, and under load, where it must be flat.

Fresh brokers idle at the same time; then each in turn takes a steady stream of records while a consumer reads
them, and is looked at several times a second. Growth is the median of the last quarter less the second's.

    python bench/broker/memory.py [--quick]
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from broker.load import Shape, consume, produce, write_payloads
from broker.run_setup import Part, RunSetup, main
from brokers import Broker, Kafka, Odradek, running
from charts import curves
from progress import ProgressLine
from results import MB, BenchResult, markdown_table, verdict

TITLE = "memory"
TOPIC = "memory"
SHAPE = Shape(100, 16 * 1024, 5, "none", 6)
RECORDS_PER_SECOND = 250_000
LOAD_SECONDS, QUICK_LOAD_SECONDS = 25, 4
IDLE_SECONDS, QUICK_IDLE_SECONDS = 60, 3
LOOK_SECONDS = 0.25
RATIO_GOAL = 1 / 6
FLAT_MB = 10
KEPT_SAMPLES = 60


def measure(setup: RunSetup, brokers: tuple[Broker, ...]) -> BenchResult:
    """Brokers of its own, since used ones differ."""
    idle_seconds = QUICK_IDLE_SECONDS if setup.is_quick else IDLE_SECONDS
    load_seconds = QUICK_LOAD_SECONDS if setup.is_quick else LOAD_SECONDS
    place = setup.directory / TITLE
    with running(Odradek, Kafka, directory=place) as fresh, ProgressLine(TITLE, 1 + len(fresh)) as progress:
        progress.begin(f"both idle for {idle_seconds} s")
        time.sleep(idle_seconds)
        idle = {broker.name: broker.resident_bytes() / MB for broker in fresh}
        progress.done()
        loaded = {}
        for broker in fresh:
            progress.begin(f"{broker.name} under load for {load_seconds} s")
            loaded[broker.name] = _under_load(broker, setup, load_seconds)
            progress.done()
    return {"idle_seconds": idle_seconds, "idle_mb": idle, "load_mb": loaded}


def _under_load(broker: Broker, setup: RunSetup, load_seconds: int) -> list[float]:
    """Resident megabytes over the time of the load, evenly spaced."""
    records = RECORDS_PER_SECOND * load_seconds
    payloads = write_payloads(setup.directory, SHAPE.record_bytes)
    broker.create_topic(TOPIC, SHAPE.partitions)
    samples: list[float] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_SECONDS):
            samples.append(broker.resident_bytes() / MB)

    with ThreadPoolExecutor(2) as threads:
        looking = threads.submit(look)
        reading = threads.submit(consume, broker.bootstrap, TOPIC, SHAPE.partitions, records)
        try:
            produce(broker.port, TOPIC, SHAPE, records, payloads, records_per_second=RECORDS_PER_SECOND)
            reading.result()
        finally:
            ended.set()
        looking.result()
    return samples[:: max(1, len(samples) // KEPT_SAMPLES)]


def growth(samples: list[float]) -> float:
    """Megabytes by which the last quarter of the time lies above the second."""
    quarter = max(1, len(samples) // 4)
    return statistics.median(samples[-quarter:]) - statistics.median(samples[quarter : 2 * quarter])


def markdown(outcome: BenchResult) -> str:
    idle, loaded = outcome["idle_mb"], outcome["load_mb"]
    rows = [
        [who, f"{idle[who]:.0f}", f"{max(loaded[who]):.0f}", f"{growth(loaded[who]):+.1f}"] for who in idle
    ]
    ratio = idle["odradek"] / idle["Kafka"]
    grown = growth(loaded["odradek"])
    return "\n".join(
        [
            "Resident memory, MB:\n",
            markdown_table(
                ["", f"idle for {outcome['idle_seconds']} s", "most under load", "growth under load"], rows
            ),
            "",
            verdict("idle ≤ 1/6 of Kafka's", ratio <= RATIO_GOAL, f"1/{1 / ratio:.1f}"),
            verdict(f"flat under load (within {FLAT_MB} MB)", grown <= FLAT_MB, f"{grown:+.1f} MB"),
        ]
    )


def plot(outcome: BenchResult, plots: Path) -> None:
    series = {
        who: ([number * 100 / len(samples) for number in range(len(samples))], samples)
        for who, samples in outcome["load_mb"].items()
    }
    curves(
        plots / "broker-memory.png",
        "resident memory under a steady load of 100-byte records",
        series,
        x_label="% of the load",
        y_label="MB",
    )


PART = Part(TITLE, measure, markdown, plot, shares_brokers=False)

if __name__ == "__main__":
    main(PART)
