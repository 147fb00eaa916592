"""The short profile: each step of both versions, and each victim; the long one is a part of `make faults`.

`ODRADEK_FAULT_SEED` chooses other moments, victims and ends.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from faults.transactions.jobs import STEPS_OF_V1, STEPS_OF_V2
from faults.transactions.kill_run import VICTIMS, KillRun, each_step_once, every_round

SEED = int(os.environ.get("ODRADEK_FAULT_SEED", "20261119"))


@pytest.mark.slow
@pytest.mark.timeout(300)  # more than the suite allows, for a busy machine
def test_transactions_stay_whole_when_anybody_is_killed_at_any_step(tmp_path: Path) -> None:
    rounds = each_step_once(Random(SEED))
    verdict, failures = KillRun(SEED, rounds, tmp_path).run()
    assert verdict.is_good, "\n".join(verdict.lines())
    assert not failures, failures
    assert sum(verdict.counts.faults.values()) == len(rounds)
    assert len(verdict.counts.faults) == len(VICTIMS)
    assert verdict.counts.transactions > 2 * len(rounds)


def test_the_long_profile_kills_each_victim_at_each_step_of_both_versions_and_ends() -> None:
    counts = Counter(every_round(Random(SEED)))
    assert len(counts) == (len(STEPS_OF_V1) + len(STEPS_OF_V2)) * len(VICTIMS) * 2
    assert set(counts.values()) == {1}
