"""Our clients beside confluent-kafka, aiokafka and kafka-python: the same tasks on one broker, in one run.

    python bench/clients/run.py [--rounds 3] [--on odradek --on kafka] [--quick] [--report]

Alone on a quiet machine the whole takes about 10 minutes, `--quick` (on odradek only) one.

Every run is a process of its own and counts only what happens after it is connected and warm. `--report`
prints and draws what was measured last.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from brokers import Kafka, Odradek, running
from clients.measuring import measure
from clients.report import markdown, plot
from results import CACHE, PLOTS, RESULTS, circumstances, load, save

BROKERS = {"odradek": Odradek, "kafka": Kafka}
PACKAGES = ("confluent-kafka", "aiokafka", "kafka-python", "pyarrow")
RESULT_FILE = "clients.json"


def main() -> None:
    options = _options()
    results, plots = (CACHE, CACHE) if options.quick else (RESULTS, PLOTS)
    path = results / RESULT_FILE
    for name in options.on:
        if not options.report:
            _measure(name, options, path)
        outcome = load(path)[name]
        print(markdown(BROKERS[name].name, outcome), flush=True)
        plot(BROKERS[name].name, outcome, plots)


def _measure(name: str, options: argparse.Namespace, path: Path) -> None:
    with (
        tempfile.TemporaryDirectory(dir=options.directory, prefix="odradek-bench-") as directory,
        running(BROKERS[name], directory=Path(directory)) as (broker,),
    ):
        outcome = measure(broker, options.rounds, is_quick=options.quick, with_memory=name == "odradek")
    kept = load(path) if path.exists() else {}
    save(path, kept | {name: outcome | {"circumstances": circumstances(PACKAGES)}})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compares Python's Kafka clients, side by side.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--on", action="append", choices=list(BROKERS), help="both brokers by default, odradek if quick"
    )
    parser.add_argument("--quick", action="store_true", help="a sanity check: few records, no real figures")
    parser.add_argument("--report", action="store_true", help="print and draw what was measured last")
    parser.add_argument("--directory", help="where the broker keeps its data; the system's choice by default")
    options = parser.parse_args()
    options.on = options.on or (["odradek"] if options.quick else list(BROKERS))
    if options.quick:
        options.rounds = 1
    return options


if __name__ == "__main__":
    main()
