"""Shared by all broker comparisons: options, a directory, running brokers, saved and printed results."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from brokers import Broker, Kafka, Odradek, running
from processes import allow_many_files
from reserved_memory import reserved_memory
from results import CACHE, PLOTS, RESULTS, BenchResult, circumstances, load, save

RESULT_FILE = "broker.json"


@dataclass(frozen=True)
class RunSetup:
    """How a run is made, and where its outcome goes: a sanity check does not replace real figures."""

    directory: Path
    rounds: int
    is_quick: bool
    renew_memory: Callable[[], None]


@dataclass(frozen=True)
class Part:
    """One comparison: functions that measure, print and plot it. Some need brokers of their own."""

    title: str
    measure: Callable[[RunSetup, tuple[Broker, ...]], BenchResult]
    markdown: Callable[[BenchResult], str]
    plot: Callable[[BenchResult, Path], None]
    shares_brokers: bool = True


def main(*parts: Part) -> None:
    """Measure the parts on one pair of brokers, print their tables, keep the figures, draw the plots."""
    options = _options()
    results, plots = (CACHE, CACHE) if options.quick else (RESULTS, PLOTS)
    if options.quick:
        print("A sanity check: these are no figures.")
    if options.report:
        for part in parts:
            report(part, load(results / RESULT_FILE)[part.title], plots)
        return
    allow_many_files()
    memory = nullcontext(lambda: None) if options.quick else reserved_memory()
    with (
        memory as renew_memory,
        tempfile.TemporaryDirectory(dir=options.directory, prefix="odradek-bench-") as directory,
    ):
        setup = RunSetup(Path(directory), options.rounds, options.quick, renew_memory)
        for part, outcome in _measured(parts, setup):
            keep(results / RESULT_FILE, part.title, outcome)
            report(part, outcome, plots)


def _measured(parts: tuple[Part, ...], setup: RunSetup) -> Iterator[tuple[Part, BenchResult]]:
    """The parts that share brokers first, then, when those are gone, the others."""
    sharing = [part for part in parts if part.shares_brokers]
    if sharing:
        with running(Odradek, Kafka, directory=setup.directory) as brokers:
            for part in sharing:
                yield part, part.measure(setup, brokers)
    for part in parts:
        if not part.shares_brokers:
            yield part, part.measure(setup, ())


def keep(path: Path, title: str, outcome: BenchResult) -> None:
    """Replace one part of the results; the others stay as they were measured."""
    kept = load(path) if path.exists() else {}
    measured_with = circumstances(("confluent-kafka", "uvloop"))
    save(path, kept | {title: outcome | {"circumstances": measured_with}})


def report(part: Part, outcome: BenchResult, plots: Path) -> None:
    print(f"\n## {part.title}\n\n{part.markdown(outcome)}", flush=True)
    part.plot(outcome, plots)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compares odradek with Apache Kafka, side by side.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a sanity check: few records, no real figures")
    parser.add_argument("--report", action="store_true", help="print and draw what was measured last")
    parser.add_argument(
        "--directory", help="where the brokers keep their data; the system's choice by default"
    )
    options = parser.parse_args()
    if options.quick:
        options.rounds = 2
    return options
