from __future__ import annotations

from itertools import product

import pytest

from faults.cluster.fault_run import schedule
from faults.cluster.main import kinds_for, main, part

DEFAULTS = {option.name: option.default for option in main.params}


def test_every_store_runs_with_three_and_with_five_brokers_by_default() -> None:
    assert set(DEFAULTS["stores"]) == {"embedded", "zookeeper", "zookeeper3"}
    assert set(DEFAULTS["broker_counts"]) == {3, 5}


@pytest.mark.parametrize(("store", "least"), list(product(DEFAULTS["stores"], DEFAULTS["min_insync"])))
def test_every_kind_of_fault_is_done_on_every_store_by_default(store: str, least: int) -> None:
    count, sizes = DEFAULTS["fault_count"], DEFAULTS["broker_counts"]
    faults = schedule(1, count * len(sizes), kinds_for(store, least))
    runs = [part(faults, number, count) for number in range(len(sizes))]
    assert [len(run) for run in runs] == [count, count]
    assert {kind for run in runs for kind in run} == set(kinds_for(store, least))
