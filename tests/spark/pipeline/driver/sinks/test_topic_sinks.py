"""Topics as sinks: a micro-batch is one transaction, with the dead letters in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from spark.pipeline.conftest import Runner
from spark.transactions.test_foreach_batch import committed_values, forget_commit

PIPELINE = """\
name: {topic}
bootstrap: {bootstrap}
sources:
  orders:
    topic: {topic}-orders
    format: json
    schema: {{id: bigint not null}}
    bad_records: dead-letter
    max_offsets_per_trigger: 20
transforms:
  even: SELECT id, CAST(id AS STRING) AS key FROM orders WHERE id % 2 = 0
sinks:
  even: {{from: even, topic: {topic}-even{options}}}
dead_letters: {topic}-dead
"""


@pytest.fixture
def orders(bootstrap, topic):
    librdkafka = Librdkafka(bootstrap)
    for name in ("orders", "even", "dead"):
        librdkafka.create_topic(f"{topic}-{name}", partitions=2)
    good = [Record(json.dumps({"id": number}).encode()) for number in range(50)]
    bad = [Record(b"bad %d" % number, headers=(("from", b"here"),)) for number in range(6)]
    librdkafka.produce(f"{topic}-orders", good + bad)
    return topic


def run(runner: Runner, bootstrap: str, topic: str, options: str = "") -> Path:
    text = PIPELINE.format(bootstrap=bootstrap, topic=topic, options=options)
    runner.write("pipeline.yaml", text)
    runner.run("pipeline.yaml")
    return runner.directory / f"{topic}.checkpoint"


def written(spark: Any, bootstrap: str, topic: str) -> tuple[list[int], list[bytes]]:
    """The ids, each in its order of time, and the dead letters."""
    ids = sorted(json.loads(value)["id"] for value in committed_values(spark, bootstrap, f"{topic}-even"))
    return ids, sorted(committed_values(spark, bootstrap, f"{topic}-dead"))


EXPECTED = (list(range(0, 50, 2)), [b"bad %d" % number for number in range(6)])


def test_rows_and_dead_letters_of_a_repeated_micro_batch_are_there_once(spark, runner, bootstrap, orders):
    checkpoint = run(runner, bootstrap, orders)
    assert [one.name for one in checkpoint.iterdir() if one.is_dir()] == ["even"]
    assert written(spark, bootstrap, orders) == EXPECTED
    forget_commit(checkpoint / "even", 2)
    run(runner, bootstrap, orders)
    assert written(spark, bootstrap, orders) == EXPECTED

    for row in runner.records(bootstrap, f"{orders}-dead"):
        assert [one.key for one in row.headers][:2] == ["from", "odradek.topic"]
    first = [event for event in runner.events if event["event"] == "progress"][:6]
    assert sum(row["rows_out"] for row in first if row["query"] == "even") == 25
    assert sum(row["rows_out"] for row in first if row["query"] == "dead_letters_orders") == 6
    running = next(event for event in runner.events if event["event"] == "running")
    assert running["dead_letters"] == ["dead_letters_orders"]


def test_at_least_once_has_dead_letters_of_its_own(spark, runner, bootstrap, orders):
    checkpoint = run(runner, bootstrap, orders, ", options: {delivery: at-least-once}")
    assert sorted(one.name for one in checkpoint.iterdir() if one.is_dir()) == ["dead_letters_orders", "even"]
    assert written(spark, bootstrap, orders) == EXPECTED
    forget_commit(checkpoint / "even", 2)
    forget_commit(checkpoint / "dead_letters_orders", 2)
    run(runner, bootstrap, orders, ", options: {delivery: at-least-once}")
    ids, letters = written(spark, bootstrap, orders)
    assert len(ids) > len(EXPECTED[0])
    assert letters == EXPECTED[1]
