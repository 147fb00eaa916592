"""Progress of a run: totals, rates, lag and its trend, as the terminal, Prometheus and JSON show it."""

from __future__ import annotations

import io
import sys
import threading
import time

import pytest
from rich.console import Console

from odradek.spark.pipeline.running.prometheus import text
from odradek.spark.pipeline.running.summary import RunSummary
from odradek.spark.pipeline.running.view import line, rendered


def progress(batch: int, rows: int, query: str = "archive") -> dict:
    return {
        "event": "progress",
        "query": query,
        "batch": batch,
        "time": "2026-01-31T12:00:00Z",
        "rows_in": rows,
        "rows_out": rows // 2,
        "batch_ms": 250,
        "parts_ms": {"addBatch": 200, "walCommit": 20},
        "state_rows": 7,
        "state_bytes": 2048,
        "late_rows": 1,
        "watermark": None,
        "offsets": {"orders": {"orders-0": 10}},
    }


def a_run() -> RunSummary:
    run = RunSummary("sales", started_s=0.0)
    run.on_event({"event": "session", "jvm_pid": 1, "master": "local[2]"}, 1.0)
    queries = {"queries": ["archive", "dead_letters_orders"], "dead_letters": ["dead_letters_orders"]}
    run.on_event({"event": "running", **queries}, 2.0)
    run.on_event(progress(0, 1000), 3.0)
    run.on_event(progress(1, 3000), 4.0)
    run.on_event(progress(0, 8, "dead_letters_orders"), 4.0)
    run.on_event({"event": "lag", "query": "archive", "lag": {"orders-0": 100, "orders-1": 900}}, 3.0)
    run.on_event({"event": "lag", "query": "archive", "lag": {"orders-0": 500, "orders-1": 100}}, 4.0)
    return run


def test_totals_rates_and_lag_follow_from_the_events():
    run = a_run()
    archive = run.as_row(4.0)["queries"]["archive"]
    assert (archive["rows_in"], archive["rows_out"], archive["lag_total"]) == (4000, 2000, 600)
    assert (archive["rows_in_per_s"], archive["rows_out_per_s"]) == (1000.0, 500.0)
    assert run.as_row(13.5)["queries"]["archive"]["rows_in_per_s"] == 300.0  # the first batch is too old
    query = run.query("archive")
    assert (query.trend("orders-0"), query.trend("orders-1")) == ("up", "down")
    assert archive["lag_trend"] == {"orders-0": "up", "orders-1": "down"}
    assert archive["lag_total_trend"] == "down"
    assert run.dead_letters == 4


def test_rows_count_for_the_time_in_which_their_batch_was_made():
    run = RunSummary("sales", started_s=0.0)

    def rate(now_s: float) -> float:
        return run.query("archive").rates(now_s, 0.0)[0]

    assert rate(5.0) == 0
    run.on_event({**progress(0, 3_000_000), "batch_ms": 60_000}, 100.0)
    assert rate(100.0) == 50_000
    assert 30_000 < rate(130.0) < 40_000  # the next batch has begun and is not there yet
    run.on_event({**progress(1, 3_000_000), "batch_ms": 60_000}, 160.0)
    assert rate(160.0) == 50_000
    run.on_event({**progress(2, 0), "batch_ms": 0}, 170.0)
    assert rate(170.0) == 0


def test_looking_at_a_run_changes_nothing():
    run = a_run()
    before = run.as_row(4.0)
    run.as_row(1000.0)
    assert run.as_row(4.0) == before


@pytest.fixture
def threads_alternate_often():
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval_s)


@pytest.mark.usefixtures("threads_alternate_often")
def test_a_run_can_be_shown_from_other_threads_while_events_arrive():
    run = a_run()
    is_over = threading.Event()
    failures: list[Exception] = []

    def show() -> None:
        while not is_over.is_set():
            try:
                rendered(run, time.monotonic())
                text(run)
            except (RuntimeError, IndexError, KeyError) as error:
                failures.append(error)

    readers = [threading.Thread(target=show) for _ in range(2)]
    for reader in readers:
        reader.start()
    deadline, batch = time.monotonic() + 1, 0
    while time.monotonic() < deadline:
        batch += 1
        query = f"query {batch % 50}"
        run.on_event({**progress(batch, 10, query), "batch_ms": 0}, time.monotonic())
        lag = {f"orders-{batch % 3}": batch}
        run.on_event({"event": "lag", "query": query, "lag": lag}, time.monotonic())
    is_over.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_the_last_error_stays_when_the_pipeline_runs_again():
    run = a_run()
    run.on_event({"event": "failed", "error": "the disk is full", "is_permanent": False}, 5.0)
    run.error = None
    row = run.as_row(6.0)
    assert (row["error"], row["last_error"], row["failures"]) == (None, "the disk is full", 1)


def test_the_terminal_shows_all_of_it():
    console = Console(width=160, record=True, file=io.StringIO())
    run = a_run()
    run.on_event({"event": "failed", "error": "the disk is full", "is_permanent": False}, 5.0)
    console.print(rendered(run, 5.0))
    shown = console.export_text()
    for part in ("sales", "local[2]", "dead letters 4", "4,000", "7 rows, 2 kB", "work 200", "orders-1 100↓"):
        assert part in shown, part
    assert "last error: the disk is full" in shown


def test_a_line_shows_all_of_it():
    run = a_run()
    assert line(run, 5.0).startswith("sales: running; archive: batch 1, 4,000 rows in (")
    assert "ms, lag 600, state 7 rows, 2 kB; " in line(run, 5.0)
    assert line(run, 5.0).endswith("; dead letters 4")
    run.on_event({"event": "failed", "error": "the disk is full", "is_permanent": False}, 5.0)
    assert line(run, 5.0).endswith("; dead letters 4; last error: the disk is full")


def test_prometheus_gets_every_number():
    lines = text(a_run()).splitlines()
    assert 'odradek_pipeline_rows_in_total{pipeline="sales",query="archive"} 4000' in lines
    assert (
        'odradek_pipeline_lag_records{pipeline="sales",query="archive",topic="orders",partition="0"} 500'
        in lines
    )
    assert 'odradek_pipeline_dead_letters_total{pipeline="sales"} 4' in lines
    assert 'odradek_pipeline_up{pipeline="sales"} 1' in lines
    names = [one.split()[2] for one in lines if one.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_prometheus_has_the_source_as_a_label_where_two_read_one_topic_name():
    run = a_run()
    lag = {"east/my-orders-0": 3, "west/my-orders-0": 70}
    run.on_event({"event": "lag", "query": "archive", "lag": lag}, 5.0)
    lines = text(run).splitlines()
    for source, count in (("east", 3), ("west", 70)):
        labels = f'pipeline="sales",query="archive",source="{source}",topic="my-orders",partition="0"'
        assert f"odradek_pipeline_lag_records{{{labels}}} {count}" in lines


def test_prometheus_counts_failures_and_has_the_last_error_as_a_label():
    run = a_run()
    lines = text(run).splitlines()
    assert 'odradek_pipeline_failures_total{pipeline="sales"} 0' in lines
    assert not any(one.startswith("odradek_pipeline_last_error{") for one in lines)
    for error in ("the broker is away", 'there is no topic "ordres"\nat all'):
        run.on_event({"event": "failed", "error": error, "is_permanent": False}, 5.0)
    lines = text(run).splitlines()
    assert 'odradek_pipeline_failures_total{pipeline="sales"} 2' in lines
    (found,) = [one for one in lines if one.startswith("odradek_pipeline_last_error{")]
    assert found.endswith('{pipeline="sales",error="there is no topic \\"ordres\\"\\nat all"} 1')
