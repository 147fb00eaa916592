"""The order `stop`, which Ctrl-C gives: a micro-batch that is executed ends, and no other begins."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from odradek.spark.pipeline.driver.stopping import BatchEnd

PIPELINE = '''\
from odradek.spark.pipeline import Pipeline, to_parquet, topic

def gated(orders):
    """The second micro-batch tells that it is executed, and then waits for the gate to open."""
    from pyspark.sql import functions as F

    def passed(offset):
        import os, time

        if offset >= 10:
            open("{directory}/waiting", "w").close()
            while not os.path.exists("{directory}/open"):
                time.sleep(0.01)
        return True

    return orders.filter(F.udf(passed, "boolean")("_offset"))

pipeline = Pipeline(
    "gated",
    bootstrap="{bootstrap}",
    sources=[topic("{topic}", name="orders", format="json", schema="id bigint", **{limit})],
    steps=[gated],
    sinks=[to_parquet("out", name="out", source="gated")],
    trigger={trigger},
)
'''


def batches(directory: Path, kind: str) -> set[str]:
    return {one for one in os.listdir(directory / "gated.checkpoint/out" / kind) if one.isdigit()}


@pytest.fixture
def write(bootstrap, topic, runner):
    librdkafka = Librdkafka(bootstrap)
    librdkafka.create_topic(topic)
    librdkafka.produce(topic, [Record(b'{"id": 1}')] * 40)
    given = {"directory": runner.directory, "bootstrap": bootstrap, "topic": topic}

    def written(limit: dict[str, int], trigger: str | None) -> None:
        runner.write("gated.py", PIPELINE.format(**given, limit=limit, trigger=repr(trigger)))

    return written


def test_a_stop_lets_the_micro_batch_end(runner, write):
    waiting, gate = runner.directory / "waiting", runner.directory / "open"

    def order(event):
        if event["event"] == "stopping":
            gate.touch()
        return "stop" if waiting.exists() else None  # there is an event every second

    write({"max_offsets_per_trigger": 10}, None)
    runner.order_after = order
    runner.run("gated.py", trigger="always")
    assert batches(runner.directory, "offsets") == batches(runner.directory, "commits") == {"0", "1"}
    assert len(runner.parquet("out")) == 20

    runner.order_after = lambda _: None
    runner.run("gated.py")
    assert len(runner.parquet("out")) == 40


def test_a_query_that_waits_for_its_trigger_ends_at_once(runner, write):
    (runner.directory / "open").touch()
    write({}, "1 day")
    runner.order_after = lambda event: "stop" if event["event"] == "lag" else None
    runner.run("gated.py", trigger="always")
    assert batches(runner.directory, "offsets") == batches(runner.directory, "commits") == {"0"}
    assert len(runner.parquet("out")) == 40


class GivenExecution:
    """Spark's execution of one query, as far as it is asked; the test says where its thread is."""

    def __init__(self) -> None:
        self.begun, self.committed = 1, 0
        self.is_locked = self.is_waiting = self.is_interrupted = False
        self.ended: object = None

    def query(self) -> Any:
        number = lambda batch: SimpleNamespace(isDefined=lambda: True, get=lambda: batch)  # noqa: E731
        lock = SimpleNamespace(
            tryLock=lambda: not self.is_locked,
            unlock=lambda: None,
            hasQueuedThread=lambda _: self.is_waiting,
        )
        thread = SimpleNamespace(
            isAlive=lambda: True, interrupt=lambda: setattr(self, "is_interrupted", True)
        )
        loader = MagicMock()
        state = SimpleNamespace(get=MagicMock(), set=lambda found: setattr(self, "ended", found))
        execution = SimpleNamespace(
            awaitProgressLock=lambda: lock,
            queryExecutionThread=lambda: thread,
            offsetLog=lambda: SimpleNamespace(getLatestBatchId=lambda: number(self.begun)),
            commitLog=lambda: SimpleNamespace(getLatestBatchId=lambda: number(self.committed)),
            state=lambda: state,
            getClass=lambda: loader,
        )
        return SimpleNamespace(_jsq=SimpleNamespace(streamingQuery=lambda: execution))


def test_a_micro_batch_that_is_planned_or_executed_is_left_alone():
    execution = GivenExecution()
    end = BatchEnd(execution.query())
    execution.is_locked = True  # its offsets are asked for
    end.look()
    execution.is_locked = False  # it is planned, then executed
    end.look()
    end.look()
    assert execution.ended is None
    execution.is_waiting = True  # to commit
    end.look()
    assert execution.ended is not None
    assert not execution.is_interrupted


TWO_SINKS = '''\
from odradek.spark.pipeline import Pipeline, to_parquet, topic

def slow(orders):
    """Is executed until the gate opens."""
    from pyspark.sql import functions as F

    def passed(offset):
        import os, time

        open("{directory}/waiting", "w").close()
        while not os.path.exists("{directory}/open"):
            time.sleep(0.01)
        return True

    return orders.filter(F.udf(passed, "boolean")("_offset"))

def failing(orders):
    from pyspark.sql import functions as F

    def passed(offset):
        import os, time

        while not os.path.exists("{directory}/waiting"):
            time.sleep(0.01)
        raise ValueError("there is no such shop")

    return orders.filter(F.udf(passed, "boolean")("_offset"))

pipeline = Pipeline(
    "two",
    bootstrap="{bootstrap}",
    sources=[topic("{topic}", name="orders", format="json", schema="id bigint")],
    steps=[slow, failing],
    sinks=[to_parquet("a", name="a", source="slow"), to_parquet("b", name="b", source="failing")],
)
'''


@pytest.fixture
def short_stop_timeout(spark):
    setting = "spark.sql.streaming.stopTimeout"
    spark.conf.set(setting, "1ms")
    yield
    spark.conf.unset(setting)


@pytest.mark.usefixtures("short_stop_timeout")
def test_a_query_that_does_not_stop_in_time_does_not_hide_why_another_failed(runner, bootstrap, topic, capfd):
    librdkafka = Librdkafka(bootstrap)
    librdkafka.create_topic(topic)
    librdkafka.produce(topic, [Record(b'{"id": 1}')])
    text = TWO_SINKS.format(directory=runner.directory, bootstrap=bootstrap, topic=topic)
    runner.write("two.py", text)
    try:
        with pytest.raises(Exception, match="there is no such shop"):
            runner.run("two.py", "always")
    finally:
        (runner.directory / "open").touch()
    assert "the query a did not stop: " in capfd.readouterr().err
