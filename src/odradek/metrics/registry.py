"""The collectors of all metrics, and their samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from odradek.metrics.names import Metric


class Sample(NamedTuple):
    """One value; its labels in the order of the metric's."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


Collector = Callable[[], Iterable[Sample]]


class Registry:
    """The collectors of a broker. Owned by it; called on its loop, which owns the values."""

    def __init__(self) -> None:
        self._collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        """Add a collector."""
        self._collectors.append(collector)

    def samples(self) -> list[Sample]:
        """The samples of all collectors."""
        return [sample for collector in self._collectors for sample in collector()]
