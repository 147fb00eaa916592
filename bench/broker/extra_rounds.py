"""More rounds for the rows of the last run that are too close to the main bar for five rounds to decide.

A row is close if its CPU lies within its spread of half of Kafka's, on either side, producing or consuming.
It gets further rounds on fresh, warm brokers, which are put together with the ones it has: none is left out.
What is not close stays as it was measured, reached or missed.

    python bench/broker/extra_rounds.py --rounds 10
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from broker import throughput
from broker.load import Shape
from broker.run_setup import RESULT_FILE, Part, RunSetup, main
from broker.throughput import CPU_GOAL, DIRECTIONS, QUICK_SHAPES, SHAPES, Line
from brokers import Broker
from results import RESULTS, BenchResult, load


def is_close(line: Line) -> bool:
    """Whether more rounds may well change what is said of a row in one direction."""
    return abs(line.cpu_ratio.median - CPU_GOAL) <= line.cpu_ratio.spread


def close_shapes(outcome: BenchResult) -> list[Shape]:
    """The shapes that are close in either direction."""
    close = {
        row["row"]
        for row in outcome["rows"]
        if any(is_close(Line(row, direction)) for direction in DIRECTIONS)
    }
    return [shape for shape in SHAPES if shape.name in close]


def together(row: BenchResult, more: BenchResult) -> BenchResult:
    """All rounds of a row."""
    return row | {direction: _joined(row[direction], more[direction]) for direction in DIRECTIONS}


def _joined(first: BenchResult, second: BenchResult) -> BenchResult:
    return {
        who: {what: values + second[who][what] for what, values in measured.items()}
        for who, measured in first.items()
    }


def measure(setup: RunSetup, brokers: tuple[Broker, ...]) -> BenchResult:
    known = load(RESULTS / RESULT_FILE)[throughput.TITLE]
    shapes = QUICK_SHAPES if setup.is_quick else close_shapes(known)
    more = {row["row"]: row for row in throughput.measure_shapes(setup, brokers, shapes)}
    rows = [together(row, more[row["row"]]) if row["row"] in more else row for row in known["rows"]]
    return known | {"rows": rows}


PART = Part(throughput.TITLE, measure, throughput.markdown, throughput.plot)

if __name__ == "__main__":
    main(PART)
