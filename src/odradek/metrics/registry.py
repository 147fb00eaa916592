"""Who can tell numbers, and what they tell when they are asked."""

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
    """The collectors of a broker. Owned by it, on the loop; asked there, because the numbers live there."""

    def __init__(self) -> None:
        self._collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        """Have it asked as well."""
        self._collectors.append(collector)

    def samples(self) -> list[Sample]:
        """Everything that can be told now."""
        return [sample for collector in self._collectors for sample in collector()]
