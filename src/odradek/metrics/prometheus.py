"""Samples in Prometheus' text format. The library is imported on the first request, never at startup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from odradek.metrics.names import Metric, MetricType
from odradek.metrics.registry import Sample

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def expose(samples: Iterable[Sample]) -> bytes:
    """The exposition of the samples; any thread, slow for many samples."""
    from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(samples))
    return generate_latest(registry)


class _Collector:
    """Passes the samples to the library."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Family]:
        families: dict[Metric, Any] = {}
        for metric, labels, value in self._samples:
            family = families.get(metric)
            if family is None:
                family = families[metric] = _family(metric)
            family.add_metric(labels, value)
        yield from families.values()


def _family(metric: Metric) -> Any:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415

    family = CounterMetricFamily if metric.kind is MetricType.COUNTER else GaugeMetricFamily
    return family(metric.name, metric.help, labels=metric.labels)
