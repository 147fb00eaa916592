"""The tables and plots of the client comparison, from its figures."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from charts import curves, grouped_bars
from clients.measuring import CONFLUENT, MODULES, OURS, PERCENTILES, TABLE_ROWS
from harness import Figures
from results import BenchResult, markdown_table, verdict

PRODUCE_GOAL, CONSUME_GOAL, TABLE_GOAL = 2.0, 1.5, 5.0
FLAT_MB = 20


def streams() -> dict[str, float]:
    """The tasks that move many records, each with how many times faster than the best we want to be."""
    goals = {
        "produce": PRODUCE_GOAL,
        "produce, default batches": PRODUCE_GOAL,
        "consume": CONSUME_GOAL,
    }
    for rows in TABLE_ROWS:
        goals |= {f"produce tables of {rows:,}": TABLE_GOAL, f"consume tables of {rows:,}": TABLE_GOAL}
    return goals


def median(outcome: BenchResult, who: str, what: str) -> float:
    return Figures(tuple(outcome[who][what])).median


def over_the_best(outcome: BenchResult, theirs: BenchResult | None = None) -> Figures:
    """Ours by the best of the others, who is picked by medians; `theirs` if those do another task."""
    theirs = outcome if theirs is None else theirs
    best = max((who for who in MODULES if who != OURS), key=lambda who: median(theirs, who, "rate"))
    return Figures(tuple(outcome[OURS]["rate"])).over(Figures(tuple(theirs[best]["rate"])))


def over_single_records(outcome: BenchResult, name: str) -> Figures:
    """Ours by the best of the others record by record: nobody who wants tables would ask for more of them."""
    return over_the_best(outcome[name], outcome[name.partition(" tables")[0]])


def markdown(on: str, outcome: BenchResult) -> str:
    lines = [f"\n### On {on}\n", _stream_table(outcome), "", _cpu_table(outcome), "", _single_table(outcome)]
    if "memory" in outcome:
        lines += ["", _memory_table(outcome["memory"])]
    return "\n".join([*lines, "", *_verdicts(outcome)])


def _stream_table(outcome: BenchResult) -> str:
    rows = []
    for name in streams():
        ratio, single = over_the_best(outcome[name]), over_single_records(outcome, name)
        rates = [f"{median(outcome[name], who, 'rate'):.2f}" for who in MODULES]
        ratios = [f"{one.median:.2f} ± {one.spread:.2f}" for one in (ratio, single)]
        rows.append([name, *rates, *ratios])
    columns = ["million records/s", *MODULES, "ours / best other", "ours / best other by single records"]
    return markdown_table(columns, rows)


def _cpu_table(outcome: BenchResult) -> str:
    rows = [[name, *(f"{median(outcome[name], who, 'cpu'):.2f}" for who in MODULES)] for name in streams()]
    return markdown_table(["client CPU s per million records", *MODULES], rows)


def _single_table(outcome: BenchResult) -> str:
    rows = [
        [f"{name}, p{percent}", *(f"{outcome[name][who][str(percent)]:.3f}" for who in MODULES)]
        for name in ("round trip", "end to end")
        for percent in PERCENTILES
    ]
    return markdown_table(["one record, ms", *MODULES], rows)


def growth(samples: list[float]) -> float:
    """Megabytes by which the last quarter of the time lies above the second."""
    quarter = max(1, len(samples) // 4)
    return statistics.median(samples[-quarter:]) - statistics.median(samples[quarter : 2 * quarter])


def _memory_table(memory: BenchResult) -> str:
    rows = [
        [who, f"{max(samples):.0f}", f"{growth(samples):+.1f}"]
        for who, samples in memory["resident_mb"].items()
    ]
    return markdown_table([f"reading {memory['bytes'] / 1e9:g} GB", "most MB", "growth MB"], rows)


def _verdicts(outcome: BenchResult) -> list[str]:
    lines = []
    for name, goal in streams().items():
        ratio = over_single_records(outcome, name).median
        lines.append(verdict(f"{name} ≥ {goal:g}x the best of the others", ratio >= goal, f"{ratio:.2f}x"))
    for name in ("round trip", "end to end"):
        for percent in map(str, PERCENTILES):
            ours, theirs = outcome[name][OURS][percent], outcome[name][CONFLUENT][percent]
            seen = f"{ours:.3f} against {theirs:.3f} ms"
            lines.append(verdict(f"{name} p{percent} ≤ confluent-kafka's", ours <= theirs, seen))
    for name in streams():
        ours = median(outcome[name], OURS, "cpu")
        theirs = min(median(outcome[name], who, "cpu") for who in MODULES if who != OURS)
        seen = f"{ours:.2f} against {theirs:.2f} s"
        lines.append(verdict(f"CPU per million records lower, {name}", ours <= theirs, seen))
    if "memory" in outcome:
        grown = growth(outcome["memory"]["resident_mb"][OURS])
        lines.append(verdict("memory flat while consuming", grown <= FLAT_MB, f"{grown:+.1f} MB"))
    return lines


def plot(on: str, outcome: BenchResult, plots: Path) -> None:
    names = list(streams())
    for what, label in (("rate", "million records/s"), ("cpu", "client CPU s per million records")):
        grouped_bars(
            plots / f"clients-{what}-on-{on.lower()}.png",
            f"client libraries on {on}",
            [name.replace(" tables", "\ntables") for name in names],
            {who: [median(outcome[name], who, what) for name in names] for who in MODULES},
            label=label,
            is_logarithmic=True,
        )
    singles = [(name, str(percent)) for name in ("round trip", "end to end") for percent in PERCENTILES]
    grouped_bars(
        plots / f"clients-latency-on-{on.lower()}.png",
        f"one record at a time on {on}",
        [f"{name}, p{percent}" for name, percent in singles],
        {who: [outcome[name][who][percent] for name, percent in singles] for who in MODULES},
        label="ms",
        is_logarithmic=True,
    )
    if "memory" in outcome:
        curves(
            plots / "clients-memory.png",
            f"resident memory while reading {outcome['memory']['bytes'] / 1e9:g} GB",
            {
                who: ([number * 100 / len(samples) for number in range(len(samples))], samples)
                for who, samples in outcome["memory"]["resident_mb"].items()
            },
            x_label="% of the time",
            y_label="MB",
        )
