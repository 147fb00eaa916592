"""Plots of comparisons as small PNG files."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from PIL import Image

MAX_BYTES = 60_000
COLOURS = {
    "odradek": "#1f77b4",
    "odradek, first start": "#8fbbd9",
    "Kafka": "#c8553d",
    "bare loop": "#8a8a8a",
    "confluent-kafka": "#c8553d",
    "aiokafka": "#6a994e",
    "kafka-python": "#b08900",
}
WIDTH_INCHES = 9


@dataclass(frozen=True)
class Goal:
    """A line in a plot, and its label."""

    value: float
    text: str


@dataclass(frozen=True)
class Ratios:
    """One panel: a bar for each row with its spread, and the goal as a line."""

    title: str
    values: Sequence[float]
    spreads: Sequence[float]
    goal: Goal


def save(figure: Any, path: Path) -> None:
    """Write a figure with a palette of colours instead of millions: a third of the bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=100)
    plt.close(figure)
    Image.open(drawn).convert("RGB").quantize(32).save(path, optimize=True)
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path.name} has {path.stat().st_size} bytes; at most {MAX_BYTES} are wanted")


def ratio_panels(path: Path, title: str, rows: Sequence[str], panels: Sequence[Ratios]) -> None:
    """Horizontal bars of ratios, one panel beside the other over the same rows."""
    height = 1.6 + 0.27 * len(rows)
    figure, axes = plt.subplots(1, len(panels), figsize=(WIDTH_INCHES, height), sharey=True, squeeze=False)
    for axis, panel in zip(axes[0], panels, strict=True):
        axis.barh(
            rows, panel.values, xerr=panel.spreads, color=COLOURS["odradek"], ecolor="#333333", height=0.7
        )
        _goal_line(axis.axvline, panel.goal)
        axis.set_xlabel(f"dashed: {panel.goal.text}", fontsize=8)
        axis.set_title(panel.title, fontsize=9)
        axis.set_xlim(left=0)
        axis.tick_params(labelsize=8)
    axes[0][0].invert_yaxis()
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    save(figure, path)


def grouped_bars(
    path: Path,
    title: str,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    label: str,
    goal: Goal | None = None,
    is_logarithmic: bool = False,
) -> None:
    """Bars side by side, one colour for each candidate, with the figures above them."""
    figure, axis = plt.subplots(figsize=(WIDTH_INCHES, 4))
    width = 0.8 / len(series)
    for number, (who, values) in enumerate(series.items()):
        places = [group + (number - (len(series) - 1) / 2) * width for group in range(len(groups))]
        bars = axis.bar(places, values, width * 0.95, label=who, color=COLOURS.get(who))
        axis.bar_label(bars, fmt="{:,.3g}", fontsize=7)
    axis.set_xticks(range(len(groups)), groups, fontsize=8)
    axis.set_ylabel(label, fontsize=8)
    axis.tick_params(labelsize=8)
    if is_logarithmic:
        axis.set_yscale("log")
    if goal is not None:
        _goal_line(axis.axhline, goal)
    axis.legend(fontsize=8)
    axis.set_title(title, fontsize=10)
    figure.tight_layout()
    save(figure, path)


def curves(
    path: Path,
    title: str,
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x_label: str,
    y_label: str,
    ticks: Mapping[float, str] | None = None,
    is_logarithmic: bool = False,
) -> None:
    """Lines over a common axis; `ticks` name places on it."""
    figure, axis = plt.subplots(figsize=(WIDTH_INCHES, 4))
    for who, (xs, ys) in series.items():
        axis.plot(xs, ys, label=who, color=COLOURS.get(who), linewidth=1.6)
    if ticks is not None:
        axis.set_xticks(list(ticks), list(ticks.values()))
    if is_logarithmic:
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)
    axis.set_xlabel(x_label, fontsize=8)
    axis.set_ylabel(y_label, fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    axis.set_title(title, fontsize=10)
    figure.tight_layout()
    save(figure, path)


def _goal_line(draw: Any, goal: Goal) -> None:
    draw(goal.value, color="#222222", linestyle="--", linewidth=1, label=goal.text)
