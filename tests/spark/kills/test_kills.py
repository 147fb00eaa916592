"""One kill -9 of each kind while a query writes: every row is there once, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.cluster.brokers import FAULT_SETTINGS, odradek_brokers
from odradek.spark.transactions import hooks
from spark.kills.kill_run import BROKER, COORDINATOR, DRIVER, EXECUTOR, PROCESS, SHUFFLE, Kill
from spark.kills.one_query import DATA_SOURCE, FOREACH_BATCH, through_kills

# Each kind once, over both forms; `make faults` kills everything everywhere.
PLANS = {
    FOREACH_BATCH: [
        Kill(hooks.BEFORE_PRODUCE, SHUFFLE),
        Kill(hooks.BEFORE_END, COORDINATOR),
        Kill(hooks.AFTER_PRODUCE, BROKER),
        Kill(hooks.BEFORE_END, DRIVER),
        Kill(hooks.BEFORE_PRODUCE, EXECUTOR),
    ],
    DATA_SOURCE: [
        Kill(hooks.BEFORE_MARKER, COORDINATOR),
        Kill(hooks.DURING_PRODUCE, PROCESS),
        Kill(hooks.AFTER_END, DRIVER),
    ],
}


@pytest.mark.parametrize("form", PLANS)
def test_every_row_is_there_once_after_a_kill_of_each_kind(form: str, tmp_path: Path) -> None:
    brokers = odradek_brokers(tmp_path / "brokers", 3, **FAULT_SETTINGS, min_insync_replicas="2")
    try:
        brokers.start_all()
        run = through_kills(brokers, form, PLANS[form], tmp_path)
    finally:
        brokers.end()
    assert run.done == PLANS[form]
    assert "has fenced this one" not in run.log()
    assert ("Spark repeated a stage that writes" in run.log()) == (form == FOREACH_BATCH)
