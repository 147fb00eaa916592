"""From process start until a client is served, ours beside Apache Kafka's.

Both start on a directory that they have used and left in order; Kafka's storage is formatted before. Ready is
when the broker answers Metadata with itself as a live broker. Our first start, on an empty directory, which
includes what Kafka's formatting does, is printed beside it.

    python bench/broker/startup.py [--rounds 3] [--quick]
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from broker.run_setup import Part, RunSetup, main
from brokers import START_SECONDS, Broker, Kafka, Odradek
from charts import Goal, grouped_bars
from harness import Figures, alternate
from processes import wait_until
from progress import ProgressLine
from results import BenchResult, markdown_table, verdict

TITLE = "startup"
POLL_SECONDS = 0.002
SECONDS_GOAL = 0.4
RATIO_GOAL = 1 / 5
FIRST_START = "odradek, first start"


def seconds_until_ready(broker: Broker) -> float:
    started = time.perf_counter()
    broker.launch()
    wait_until(f"{broker.name} is ready", broker.is_ready, seconds=START_SECONDS, step=POLL_SECONDS)
    return time.perf_counter() - started


def measure(setup: RunSetup, brokers: tuple[Broker, ...]) -> BenchResult:
    """Brokers of its own, started again and again."""
    candidates: tuple[Broker, ...] = (
        Odradek(setup.directory / "startup-odradek"),
        Kafka(setup.directory / "startup-kafka"),
    )
    seconds: dict[str, list[float]] = {name: [] for name in ("odradek", "Kafka", FIRST_START)}
    with ProgressLine(TITLE, setup.rounds * len(candidates)) as progress:
        for broker in candidates:
            progress.begin(f"preparing {broker.name}")
            broker.start()
            broker.stop()
        for number in range(setup.rounds):
            progress.begin("odradek on an empty directory")
            seconds[FIRST_START].append(_first_start(candidates[0]))
            for broker in alternate(candidates, number):
                progress.begin(f"starting {broker.name}")
                seconds[broker.name].append(seconds_until_ready(broker))
                broker.stop()
                progress.done()
    return {"seconds": seconds}


def _first_start(broker: Broker) -> float:
    shutil.rmtree(broker.directory / "data")
    seconds = seconds_until_ready(broker)
    broker.stop()
    return seconds


def markdown(outcome: BenchResult) -> str:
    seconds = {who: Figures(tuple(values)) for who, values in outcome["seconds"].items()}
    ours, theirs = seconds["odradek"].median, seconds["Kafka"].median
    rows = [[who, f"{one.median:.3f}", f"{one.spread:.3f}"] for who, one in seconds.items()]
    return "\n".join(
        [
            "Seconds from process start until ready to serve, medians:\n",
            markdown_table(["", "s", "±"], rows),
            "",
            verdict(f"ready in ≤ {SECONDS_GOAL} s", ours <= SECONDS_GOAL, f"{ours:.3f} s"),
            verdict("≤ 1/5 of Kafka's", ours <= theirs * RATIO_GOAL, f"1/{theirs / ours:.1f}"),
        ]
    )


def plot(outcome: BenchResult, plots: Path) -> None:
    medians = {who: Figures(tuple(values)).median for who, values in outcome["seconds"].items()}
    grouped_bars(
        plots / "broker-startup.png",
        "from process start until ready to serve",
        [""],
        {who: [seconds] for who, seconds in medians.items()},
        label="seconds",
        goal=Goal(SECONDS_GOAL, f"goal: {SECONDS_GOAL} s"),
    )


PART = Part(TITLE, measure, markdown, plot, shares_brokers=False)

if __name__ == "__main__":
    main(PART)
