"""The state of a run from its events: totals, rates over the last seconds, lag and its trend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RATE_WINDOW_S = 10.0
TREND_WINDOW_S = 15.0
_LEAST_S = 0.001
_SAME = 0.02  # a change of lag below this part is none


@dataclass(frozen=True, slots=True)
class _Sample:
    """The rows of one batch, and when it was made."""

    begin_s: float
    end_s: float
    rows_in: int
    rows_out: int

    def part_since(self, begin_s: float) -> float:
        """How much of the batch was made after a time, from 0 to 1."""
        return min(1.0, max(0.0, (self.end_s - begin_s) / (self.end_s - self.begin_s)))


@dataclass(slots=True)
class QuerySummary:
    """One query.

    Changed by the owner of its RunSummary. Any thread may read it: what has many values is replaced as a
    whole, never changed.
    """

    name: str
    is_dead_letters: bool = False
    batch: int = -1
    rows_in: int = 0
    rows_out: int = 0
    batch_ms: int = 0
    parts_ms: dict[str, int] = field(default_factory=dict)
    state_rows: int = 0
    state_bytes: int = 0
    late_rows: int = 0
    watermark: str | None = None
    lag: dict[str, int] = field(default_factory=dict)
    last_s: float = 0.0
    _samples: tuple[_Sample, ...] = ()  # the newest last; those before the window are dropped
    _lags: tuple[tuple[float, dict[str, int]], ...] = ()

    def on_progress(self, row: Mapping[str, Any], now_s: float) -> None:
        """A micro-batch has ended."""
        self.batch, self.last_s = int(row["batch"]), now_s
        self.rows_in += int(row["rows_in"])
        self.rows_out += int(row["rows_out"])
        self.batch_ms, self.parts_ms = int(row["batch_ms"]), dict(row["parts_ms"])
        self.state_rows, self.state_bytes = int(row["state_rows"]), int(row["state_bytes"])
        self.late_rows += int(row["late_rows"])
        self.watermark = row.get("watermark") or self.watermark
        duration_s = max(_LEAST_S, self.batch_ms / 1000)
        new = _Sample(now_s - duration_s, now_s, int(row["rows_in"]), int(row["rows_out"]))
        begin_s = min(now_s - RATE_WINDOW_S, new.begin_s)
        self._samples = (*(one for one in self._samples if one.end_s >= begin_s), new)

    def on_lag(self, lag: Mapping[str, int], now_s: float) -> None:
        """The brokers said how far the ends are."""
        self.lag = dict(lag)
        kept = (one for one in self._lags if one[0] >= now_s - TREND_WINDOW_S)
        self._lags = (*kept, (now_s, self.lag))

    def rates(self, now_s: float, started_s: float) -> tuple[float, float]:
        """Rows in and out per second over the last seconds, or since the last batch began if it took longer.

        The rows of a batch are spread over the time that it took.
        """
        samples = self._samples
        if not samples:
            return 0.0, 0.0
        begin_s = max(started_s, min(now_s - RATE_WINDOW_S, samples[-1].begin_s))
        span_s = max(1.0, now_s - begin_s)
        rows_in = sum(one.rows_in * one.part_since(begin_s) for one in samples)
        rows_out = sum(one.rows_out * one.part_since(begin_s) for one in samples)
        return rows_in / span_s, rows_out / span_s

    def trend(self, partition: str) -> str:
        """Whether the lag of a partition grows: up, down or same."""
        lags = self._lags
        if not lags:
            return "same"
        return _trend(lags[0][1].get(partition, 0), lags[-1][1].get(partition, 0))

    def trends(self) -> dict[str, str]:
        """The trend of each partition."""
        return {partition: self.trend(partition) for partition in self.lag}

    def total_trend(self) -> str:
        """Whether the lag of all partitions together grows."""
        lags = self._lags
        return _trend(sum(lags[0][1].values()), sum(lags[-1][1].values())) if lags else "same"


def _trend(before: int, now: int) -> str:
    if abs(now - before) <= max(1.0, _SAME * before):
        return "same"
    return "up" if now > before else "down"


@dataclass(slots=True)
class RunSummary:
    """A whole run.

    Changed only by its owner, the thread that reads the driver's events. The live view and the metrics read
    it from threads of their own: `queries` is replaced as a whole, never changed.
    """

    name: str
    started_s: float
    state: str = "starting"
    master: str = ""
    queries: dict[str, QuerySummary] = field(default_factory=dict)
    error: str | None = None  # why it does not run
    last_error: str | None = None  # the same, kept when it runs again
    restarts: int = 0
    failures: int = 0

    def on_event(self, event: Mapping[str, Any], now_s: float) -> None:
        """Take in one event of the driver."""
        kind = event["event"]
        if kind == "session":
            self.master = str(event["master"])
            self.state = "planning"
        elif kind == "running":
            self.state = "running"
            for name in event["queries"]:
                self.query(name).is_dead_letters = name in event["dead_letters"]
        elif kind == "progress":
            self.query(event["query"]).on_progress(event, now_s)
        elif kind == "lag":
            self.query(event["query"]).on_lag(event["lag"], now_s)
        elif kind == "stopping":
            self.state = "stopping"
        elif kind == "failed":
            self.fail(str(event["error"]))

    def fail(self, sentence: str) -> None:
        """The driver has failed."""
        self.error = self.last_error = sentence
        self.failures += 1

    def query(self, name: str) -> QuerySummary:
        """The summary of a query, new at first."""
        if name not in self.queries:
            self.queries = {**self.queries, name: QuerySummary(name)}
        return self.queries[name]

    @property
    def dead_letters(self) -> int:
        """Records that went into the dead-letter topic."""
        return sum(one.rows_out for one in self.queries.values() if one.is_dead_letters)

    def as_row(self, now_s: float) -> dict[str, Any]:
        """Everything as plain data, for -o json and `status`."""
        return {
            "state": self.state,
            "master": self.master,
            "dead_letters": self.dead_letters,
            "restarts": self.restarts,
            "failures": self.failures,
            "error": self.error,
            "last_error": self.last_error,
            "queries": {name: self._query_row(one, now_s) for name, one in self.queries.items()},
        }

    def _query_row(self, query: QuerySummary, now_s: float) -> dict[str, Any]:
        rate_in, rate_out = query.rates(now_s, self.started_s)
        return {
            "batch": query.batch,
            "rows_in": query.rows_in,
            "rows_out": query.rows_out,
            "rows_in_per_s": round(rate_in, 1),
            "rows_out_per_s": round(rate_out, 1),
            "batch_ms": query.batch_ms,
            "parts_ms": query.parts_ms,
            "state_rows": query.state_rows,
            "state_bytes": query.state_bytes,
            "late_rows": query.late_rows,
            "watermark": query.watermark,
            "lag": query.lag,
            "lag_trend": query.trends(),
            "lag_total": sum(query.lag.values()),
            "lag_total_trend": query.total_trend(),
        }
