"""A run as Prometheus metrics: plain text made from the summary at each request."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from odradek.spark.pipeline.running.summary import RunSummary

_QUERY_METRICS = (
    ("rows_in_total", "counter", "Rows that a query has read.", "rows_in"),
    ("rows_out_total", "counter", "Rows that a query has written.", "rows_out"),
    ("late_rows_total", "counter", "Rows that came after the watermark.", "late_rows"),
    ("batch", "gauge", "The number of the last micro-batch.", "batch"),
    ("batch_duration_ms", "gauge", "How long the last micro-batch took.", "batch_ms"),
    ("state_rows", "gauge", "Rows in the state of a query.", "state_rows"),
    ("state_bytes", "gauge", "Bytes of memory for the state of a query.", "state_bytes"),
)
_PREFIX = "odradek_pipeline_"


def text(summary: RunSummary) -> str:
    """The exposition."""
    return "\n".join(_lines(summary)) + "\n"


def _lines(summary: RunSummary) -> Iterator[str]:
    base = f'pipeline="{_escaped(summary.name)}"'
    for name, kind, explanation, attribute in _QUERY_METRICS:
        yield from _head(name, kind, explanation)
        for query in summary.queries.values():
            yield f'{_PREFIX}{name}{{{base},query="{_escaped(query.name)}"}} {getattr(query, attribute)}'
    yield from _head("phase_duration_ms", "gauge", "The parts of the last micro-batch.")
    for query in summary.queries.values():
        for phase, duration in query.parts_ms.items():
            labels = f'{base},query="{_escaped(query.name)}",phase="{_escaped(phase)}"'
            yield f"{_PREFIX}phase_duration_ms{{{labels}}} {duration}"
    yield from _head("lag_records", "gauge", "Records of a partition that are not read yet.")
    for query in summary.queries.values():
        for name, lag in query.lag.items():
            labels = f'{base},query="{_escaped(query.name)}",{_partition_labels(name)}'
            yield f"{_PREFIX}lag_records{{{labels}}} {lag}"
    yield from _head("dead_letters_total", "counter", "Records that went into the dead-letter topic.")
    yield f"{_PREFIX}dead_letters_total{{{base}}} {summary.dead_letters}"
    yield from _head("restarts_total", "counter", "Restarts after failures.")
    yield f"{_PREFIX}restarts_total{{{base}}} {summary.restarts}"
    yield from _head("failures_total", "counter", "Failures of the driver or of a query.")
    yield f"{_PREFIX}failures_total{{{base}}} {summary.failures}"
    yield from _head(
        "last_error", "gauge", "Always 1; the label error has the last failure, if there was one."
    )
    if summary.last_error:
        yield f'{_PREFIX}last_error{{{base},error="{_escaped(summary.last_error)}"}} 1'
    yield from _head("up", "gauge", "1 while the queries run.")
    yield f"{_PREFIX}up{{{base}}} {int(summary.state == 'running')}"


def _partition_labels(name: str) -> str:
    """Of "orders-0", or of "east/orders-0" where several sources read such a partition."""
    source, _, partition = name.rpartition("/")
    topic, _, number = partition.rpartition("-")
    labels = f'topic="{_escaped(topic)}",partition="{number}"'
    return f'source="{_escaped(source)}",{labels}' if source else labels


def _head(name: str, kind: str, explanation: str) -> Iterator[str]:
    yield f"# HELP {_PREFIX}{name} {explanation}"
    yield f"# TYPE {_PREFIX}{name} {kind}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def serve(summary: RunSummary, host: str, port: int) -> ThreadingHTTPServer:
    """Answer /metrics on a background thread; port 0 picks a free one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404)
                return
            body = text(summary).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002
            """Requests are not logged."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="pipeline-metrics", daemon=True).start()
    return server
