"""Two pipelines with state into topics, while driver, coordinator and brokers are killed at the hooks.

Each row is in its topic once, as readers of committed data see it. Several JVMs: run by `make long`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from faults.cluster.brokers import FAULT_SETTINGS, odradek_brokers
from odradek import Producer
from odradek.spark.transactions import hooks
from spark.kills.kill_run import BROKER, COORDINATOR, DRIVER, PROCESS, Kill, KillRun, committed_values
from spark.pipeline.conftest import EXAMPLES

pytestmark = pytest.mark.long

BEGIN = datetime(2026, 1, 30, tzinfo=UTC)
LIMIT = 60
PLAN = [
    Kill(hooks.AFTER_PRODUCE, PROCESS),
    Kill(hooks.BEFORE_END, DRIVER),
    Kill(hooks.BEFORE_END, COORDINATOR),
    Kill(hooks.AFTER_END, DRIVER),
    Kill(hooks.AFTER_BEGIN, BROKER),
]
Rows = Sequence[Mapping[str, Any]]


def at(seconds: float) -> str:
    return (BEGIN + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def through_kills(
    directory: Path, file: str, sources: Mapping[str, Rows], target: str
) -> list[dict[str, Any]]:
    """What a pipeline writes into its topic, through the plan."""
    brokers = odradek_brokers(directory / "brokers", 3, **FAULT_SETTINGS, min_insync_replicas="2")
    try:
        brokers.start_all()
        for topic in (*sources, target):
            brokers.create_topic(topic, 2, 3)
        with Producer(bootstrap_servers=brokers.bootstrap) as producer:
            for topic, rows in sources.items():
                for number, row in enumerate(rows):
                    producer.send(topic, json.dumps(row).encode(), partition=number % 2)
        command = [sys.executable, "-m", "odradek.cli.main", "pipeline", "run", file]
        name = file.partition(".")[0]
        run = KillRun(
            brokers,
            [*command, "--available-now", "--master", "local[2]", "-o", "json"],
            PLAN,
            name,
            directory,
            (*sources, target),
            environment={
                "BROKERS": brokers.bootstrap,
                "ODRADEK_PIPELINE_STATE": str(directory / "state"),
            },
        )
        run.run()
        assert run.done == PLAN
        assert "has fenced this one" not in run.log()
        found = committed_values(brokers.bootstrap, target)
    finally:
        brokers.end()
    return [json.loads(value) for values in found for value in values]


def copied(directory: Path, file: str, before: str, after: str) -> None:
    """A copy of an example with a change."""
    text = (EXAMPLES / file).read_text()
    assert before in text
    (directory / file).write_text(text.replace(before, after))


def test_enrich_joins_every_paid_order_once(tmp_path: Path) -> None:
    copied(tmp_path, "enrich.yaml", "format: json", f"format: json\n    max_offsets_per_trigger: {LIMIT}")
    orders = [{"order_id": n, "customer": f"c{n % 7}", "amount": n / 4, "at": at(n)} for n in range(500)]
    payments = [
        {"order_id": n, "method": ("card", "cash")[n % 4 // 2], "paid_at": at(n + 300)} for n in range(500)
    ]
    joined = through_kills(tmp_path, "enrich.yaml", {"orders": orders, "payments": payments}, "paid-orders")
    assert sorted((row["order_id"], row["method"]) for row in joined) == [
        (row["order_id"], row["method"]) for row in payments
    ]


def test_sessions_with_late_clicks_are_in_a_topic_once(tmp_path: Path) -> None:
    text = (EXAMPLES / "sessions.py").read_text()
    for before, after in (
        ('to_parquet("output/sessions", source="sessions")', 'to_topic("user-sessions", source="sessions")'),
        ("to_parquet", "to_topic"),
        ('            "clicks",\n', f'            "clicks",\n            max_offsets_per_trigger={LIMIT},\n'),
    ):
        assert before in text
        text = text.replace(before, after)
    (tmp_path / "sessions.py").write_text(text)
    # Every ten minutes one of five users begins a session of four clicks; the third comes five minutes late.
    clicks = [
        (n * 600 + 60 * click + (300 if click == 2 else 0), f"u{n % 5}", n * 600 + 60 * click)
        for n in range(150)
        for click in range(4)
    ]
    rows = [{"user": user, "page": "/", "at": at(seconds)} for _, user, seconds in sorted(clicks)]
    rows += [{"user": "last", "page": "/", "at": at(90 * 86400)}] * 2
    sessions = through_kills(tmp_path, "sessions.py", {"clicks": rows}, "user-sessions")
    found = sorted((row["user"], row["clicks"], row["first"][:19]) for row in sessions)
    assert found == sorted((f"u{n % 5}", 4, at(n * 600)[:19]) for n in range(150))
