"""The live view of a run at a terminal: rates, batches, lag with its trend, state, dead letters, error."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from odradek.spark.pipeline.running.summary import QuerySummary, RunSummary

if TYPE_CHECKING:
    from rich.console import RenderableType

_TREND = {"up": "↑", "down": "↓", "same": "→"}
_MOST_PARTITIONS = 12
_COLUMNS = ("query", "batch", "rows/s in", "rows/s out", "rows in", "rows out", "batch ms", "lag", "state")
_PARTS = (
    ("latestOffset", "offsets"),
    ("getBatch", "plan source"),
    ("queryPlanning", "plan"),
    ("addBatch", "work"),
    ("walCommit", "write-ahead"),
    ("commitOffsets", "commit"),
)


def rendered(summary: RunSummary, now_s: float) -> RenderableType:
    """The whole view."""
    from rich.console import Group  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    running_s = int(now_s - summary.started_s)
    head = Text.assemble(
        (summary.name, "bold"),
        f"  {summary.state}  {running_s // 60}:{running_s % 60:02d}  {summary.master}",
        f"  dead letters {summary.dead_letters:,}" if _has_dead_letters(summary) else "",
        f"  restarts {summary.restarts}" if summary.restarts else "",
    )
    queries = Table(box=None, pad_edge=False, header_style="bold")
    for column in _COLUMNS:
        queries.add_column(column, justify="left" if column == "query" else "right")
    for query in summary.queries.values():
        queries.add_row(*_query_cells(query, summary, now_s))
    parts: list[RenderableType] = [head, queries]
    times = [line for query in summary.queries.values() if (line := _times_line(query))]
    parts += [Text(line, style="dim", overflow="ellipsis", no_wrap=True) for line in times]
    lags = [line for query in summary.queries.values() if (line := _lag_line(query))]
    parts += [Text(line, overflow="ellipsis", no_wrap=True) for line in lags]
    if summary.last_error:
        parts.append(Text(f"last error: {summary.last_error}", style="red"))
    return Group(*parts)


def line(summary: RunSummary, now_s: float) -> str:
    """The same in one line, where there is no terminal."""
    words = [f"{summary.name}: {summary.state}"]
    for query in summary.queries.values():
        rate_in, rate_out = query.rates(now_s, summary.started_s)
        words.append(
            f"{query.name}: batch {query.batch}, {query.rows_in:,} rows in ({rate_in:,.0f}/s), "
            f"{query.rows_out:,} out ({rate_out:,.0f}/s), {query.batch_ms:,} ms, "
            f"lag {sum(query.lag.values()):,}" + (f", state {_state(query)}" if query.state_bytes else "")
        )
    if _has_dead_letters(summary):
        words.append(f"dead letters {summary.dead_letters:,}")
    if summary.last_error:
        words.append(f"last error: {summary.last_error}")
    return "; ".join(words)


def _has_dead_letters(summary: RunSummary) -> bool:
    return any(query.is_dead_letters for query in summary.queries.values())


def _query_cells(query: QuerySummary, summary: RunSummary, now_s: float) -> list[str]:
    rate_in, rate_out = query.rates(now_s, summary.started_s)
    lag = f"{sum(query.lag.values()):,}" if query.lag else "-"
    return [
        query.name,
        str(query.batch) if query.batch >= 0 else "-",
        f"{rate_in:,.0f}",
        f"{rate_out:,.0f}",
        f"{query.rows_in:,}",
        f"{query.rows_out:,}",
        f"{query.batch_ms:,}",
        lag,
        _state(query) if query.state_bytes else "-",
    ]


def _state(query: QuerySummary) -> str:
    return f"{query.state_rows:,} rows, {_size(query.state_bytes)}"


def _times_line(query: QuerySummary) -> str:
    parts = [f"{name} {query.parts_ms[key]:,}" for key, name in _PARTS if query.parts_ms.get(key)]
    late = f"; {query.late_rows:,} rows too late, watermark {query.watermark}" if query.late_rows else ""
    return f"{query.name}: {', '.join(parts)} ms{late}" if parts else ""


def _lag_line(query: QuerySummary) -> str:
    if not query.lag:
        return ""
    shown = sorted(query.lag.items(), key=lambda one: (-one[1], one[0]))
    cells = [f"{name} {lag:,}{_TREND[query.trend(name)]}" for name, lag in shown[:_MOST_PARTITIONS]]
    more = f"  and {len(shown) - _MOST_PARTITIONS} more" if len(shown) > _MOST_PARTITIONS else ""
    return f"lag of {query.name}: {'  '.join(cells)}{more}"


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


class TerminalView:
    """Refreshes the view in place until it is left, on a thread of its own that only reads the summary."""

    def __init__(self, summary: RunSummary) -> None:
        from rich.console import Console  # noqa: PLC0415
        from rich.live import Live  # noqa: PLC0415

        self._summary = summary
        self._live = Live(
            get_renderable=lambda: rendered(self._summary, time.monotonic()),
            console=Console(highlight=False),
            refresh_per_second=4,
        )

    def __enter__(self) -> TerminalView:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def on_event(self, event: Mapping[str, Any], _: RunSummary) -> None:
        """Nothing: it refreshes by itself."""
