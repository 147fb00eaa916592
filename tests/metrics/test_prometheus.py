from __future__ import annotations

import subprocess
import sys

from odradek.metrics import names
from odradek.metrics.names import Metric
from odradek.metrics.prometheus import expose
from odradek.metrics.registry import Registry, Sample

METRICS = [value for value in vars(names).values() if isinstance(value, Metric)]


def test_counters_and_gauges_are_reported_with_help_type_and_labels() -> None:
    registry = Registry()
    registry.register(lambda: [Sample(names.REQUESTS, ("FETCH", "PLAINTEXT"), 3)])
    registry.register(
        lambda: [Sample(names.LOG_SIZE, ('a"b\\', "0"), 2**40), Sample(names.PARTITIONS, (), 1)]
    )

    lines = expose(registry.samples()).decode().splitlines()

    assert "# HELP odradek_requests_total Requests that were read." in lines
    assert "# TYPE odradek_requests_total counter" in lines
    assert 'odradek_requests_total{api="FETCH",listener="PLAINTEXT"} 3.0' in lines
    assert "# TYPE odradek_log_size_bytes gauge" in lines
    assert 'odradek_log_size_bytes{partition="0",topic="a\\"b\\\\"} 1.099511627776e+12' in lines
    assert "odradek_partitions 1.0" in lines


def test_every_metric_has_a_name_and_a_help_text_of_its_own() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS) > 20
    assert len({metric.help for metric in METRICS}) == len(METRICS)
    assert all(metric.help.endswith(".") for metric in METRICS)


def test_the_library_is_not_imported_before_somebody_asks() -> None:
    check = "import sys, odradek.broker.server; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
