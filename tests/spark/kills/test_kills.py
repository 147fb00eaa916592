"""One kill -9 of each kind while a query writes: every row is there once, in order."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from faults.cluster.brokers import FAULT_SETTINGS, odradek_brokers
from odradek.spark.transactions import hooks
from spark.kills.kill_run import (
    BROKER,
    COORDINATOR,
    DRIVER,
    PROCESS,
    Kill,
    KillRun,
    check_exactly_once,
    committed_values,
    produce,
)

COUNT = 600
PLAN = [
    Kill(hooks.AFTER_PRODUCE, PROCESS),
    Kill(hooks.BEFORE_END, COORDINATOR),
    Kill(hooks.AFTER_PRODUCE, BROKER),
    Kill(hooks.AFTER_END, DRIVER),
]


@pytest.mark.parametrize("form", ["foreach-batch", pytest.param("data-source", marks=pytest.mark.long)])
def test_every_row_is_there_once_after_a_kill_of_each_kind(form: str, tmp_path: Path) -> None:
    brokers = odradek_brokers(tmp_path / "brokers", 3, **FAULT_SETTINGS, min_insync_replicas="2")
    try:
        brokers.start_all()
        for topic, partitions in (("source", 2), ("target", 3)):
            brokers.create_topic(topic, partitions, 3)
        produce(brokers.bootstrap, "source", 2, COUNT)
        program = str(Path(__file__).with_name("query_program.py"))
        arguments = [brokers.bootstrap, form, "source", "target", str(tmp_path / "checkpoint")]
        run = KillRun(
            brokers, [sys.executable, program, *arguments], PLAN, "target", tmp_path, ("source", "target")
        )
        run.run()
        assert run.done == PLAN
        assert run.starts == 2
        check_exactly_once(committed_values(brokers.bootstrap, "target"), COUNT)
    finally:
        brokers.end()
