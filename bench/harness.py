"""Times several implementations of one task side by side: alternating rounds, medians, ratios to ours.

Alternating means that a slow second of the machine hits all candidates alike; a ratio of medians survives
what absolute figures do not. Run alone: the machine has two cores.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from progress import ProgressLine

ROUND_SECONDS = 0.2
FEWEST_FOR_QUARTILES = 4

Candidate = TypeVar("Candidate")


def alternate(candidates: Sequence[Candidate], round_number: int) -> list[Candidate]:
    """The order of one round: every other one is reversed, so that no candidate is always first."""
    return list(candidates) if round_number % 2 == 0 else list(reversed(candidates))


@dataclass(frozen=True)
class Figures:
    """The same thing measured once in each round."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles (of few values: between the extremes), as it is."""
        if len(self.values) < FEWEST_FOR_QUARTILES:
            return (max(self.values) - min(self.values)) / 2
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return (high - low) / 2

    def over(self, others: Figures) -> Figures:
        """Ratios round by round: a slow second of the machine hits both sides of a ratio."""
        return Figures(tuple(one / other for one, other in zip(self.values, others.values, strict=True)))


@dataclass(frozen=True)
class Measured:
    """Seconds per call of one candidate over all rounds."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, as a part of the median."""
        low, _, high = statistics.quantiles(self.seconds, n=4)
        return (high - low) / 2 / self.median


def _calls_per_round(call: Callable[[], object]) -> int:
    calls = 1
    while True:
        if _time(call, calls) >= ROUND_SECONDS / 5:
            return calls * 5
        calls *= 2


def _time(call: Callable[[], object], calls: int) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - started


def measure(candidates: Mapping[str, Callable[[], object]], rounds: int = 9) -> list[Measured]:
    """Seconds per call of each candidate, in alternating rounds."""
    calls = {name: _calls_per_round(call) for name, call in candidates.items()}
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    with ProgressLine(" / ".join(candidates), rounds) as progress:
        for number in range(rounds):
            progress.begin(f"round {number + 1}")
            for name, call in candidates.items():
                gc.collect()
                seconds[name].append(_time(call, calls[name]) / calls[name])
            progress.done()
    return [Measured(name, tuple(values)) for name, values in seconds.items()]


class Report:
    """A table of rows, ours first, with the others as ratios to it."""

    def __init__(self, title: str) -> None:
        self.table = Table(title=title, title_justify="left")
        for column in ("what", "who", "per call", "rate", "spread", "ours is faster by"):
            self.table.add_column(column, justify="left" if column in ("what", "who") else "right")

    def add(self, what: str, measured: list[Measured], items: int = 1, unit: str = "calls") -> None:
        """One group of rows; `items` is how many `unit`s a call handles. The first candidate is ours."""
        ours = measured[0].median
        for index, row in enumerate(measured):
            self.table.add_row(
                what if index == 0 else "",
                row.name,
                f"{row.median * 1e6:,.2f} us",
                f"{items / row.median:,.0f} {unit}/s",
                f"{row.spread:.0%}",
                "" if index == 0 else f"{row.median / ours:.2f}x",
            )
        self.table.add_section()

    def show(self) -> None:
        Console(width=130).print(self.table)
