"""The results of a run as Kafka's lines, a table or a JSON object."""

from __future__ import annotations

from typing import Any

from odradek.cli.bench.latencies import Latencies
from odradek.cli.bench.live import MEGABYTE
from odradek.cli.output import Row

BAR_WIDTH = 40

_COLUMNS = {"records_per_sec": "records/s", "mb_per_sec": "MB/s", "p999_ms": "p99.9 ms"}


def rates(records: int, record_bytes: int, elapsed_s: float) -> dict[str, Any]:
    """Totals and rates; a megabyte is 1024 * 1024 bytes, as in Kafka's tools."""
    elapsed_s = max(elapsed_s, 1e-9)
    return {
        "records": records,
        "seconds": round(elapsed_s, 3),
        "records_per_sec": round(records / elapsed_s, 1),
        "mb_per_sec": round(record_bytes / elapsed_s / MEGABYTE, 2),
    }


def percentiles(latencies: Latencies) -> dict[str, float]:
    """Average, percentiles and maximum in milliseconds."""
    return {
        "avg_ms": round(latencies.average_ms, 3),
        "p50_ms": round(latencies.percentile_ms(50), 3),
        "p95_ms": round(latencies.percentile_ms(95), 3),
        "p99_ms": round(latencies.percentile_ms(99), 3),
        "p999_ms": round(latencies.percentile_ms(99.9), 3),
        "max_ms": round(latencies.max_ms, 3),
    }


def columns(row: Row) -> Row:
    """The row with shorter column names for a table."""
    return {_COLUMNS.get(name, name): value for name, value in row.items()}


def short_percentiles(latencies: Latencies) -> str:
    """The percentiles for a line of progress."""
    p50, p99 = latencies.percentile_ms(50), latencies.percentile_ms(99)
    return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms, max {latencies.max_ms:.2f} ms"


def bars(latencies: Latencies) -> list[str]:
    """A histogram in text, the longest bar BAR_WIDTH wide."""
    rows = latencies.histogram()
    most = max((count for *_, count in rows), default=0)
    width = max((len(f"{end:g}") for _, end, _ in rows), default=0)
    lines = []
    for begin, end, count in rows:
        # Rounded up, so that a nonzero count is visible.
        length = -(-count * BAR_WIDTH // most)
        lines.append(f"  {begin:>{width}g} - {end:>{width}g} ms  {'#' * length:<{BAR_WIDTH}}  {count}")
    return lines
