"""The short profile of the copier run: the output is the input, although brokers and copiers are killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faults.cluster.brokers import FAULT_SETTINGS, odradek_brokers
from faults.copier.copy_run import CopyRun, Plan, difference

SEED = int(os.environ.get("ODRADEK_FAULT_SEED", "22"))


@pytest.mark.java
@pytest.mark.timeout(300)  # more than the suite allows, for a busy machine
def test_the_output_is_the_input(tmp_path: Path) -> None:
    plan = Plan(SEED, records=8_000, partitions=2, transaction_size=20, pause_seconds=(0.5, 1.5))
    brokers = odradek_brokers(tmp_path, 3, **FAULT_SETTINGS, transaction_state_log_num_partitions="6")
    try:
        brokers.start_all()
        result = CopyRun(brokers, plan, tmp_path).run()
    finally:
        brokers.end()
    assert not result.differences, "\n".join(result.lines())
    assert result.records == plan.records
    assert result.brokers_killed > 0, result
    assert result.copiers_killed > 0, result


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([b"0", b"2"], "1 lost, first [b'1']; 0 there twice; 0 never written"),
        ([b"0", b"1", b"1", b"2"], "0 lost, first []; 1 there twice; 0 never written"),
        ([b"0", b"1", b"2", b"7"], "0 lost, first []; 0 there twice; 1 never written"),
        ([b"0", b"2", b"1"], "b'2' is where b'1' should be"),
    ],
)
def test_a_difference_is_named(found: list[bytes], said: str) -> None:
    assert difference([b"0", b"1", b"2"], found) == said
