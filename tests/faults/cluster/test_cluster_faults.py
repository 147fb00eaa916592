"""Faults on clusters of broker processes: nothing acknowledged is lost, and every reader sees the same.

The short profile of `make faults`, which has every kind of fault, on more stores and brokers, for longer.
`ODRADEK_FAULT_SEED` chooses another order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faults.cluster.brokers import FAULT_SETTINGS, Brokers, odradek_brokers
from faults.cluster.fault_run import FaultRun, Plan, Result, schedule
from faults.cluster.zookeepers import ZooKeepers

SEED = int(os.environ.get("ODRADEK_FAULT_SEED", "21"))
MOST_UNKNOWN = 0.05
pytestmark = pytest.mark.timeout(300)  # more than the suite allows, for a busy machine

Start = Callable[..., Brokers]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Brokers] = []

    def make(count: int, coordination: str = "") -> Brokers:
        settings = FAULT_SETTINGS | {"leader_imbalance_check_interval_seconds": "5"}
        brokers = odradek_brokers(tmp_path, count, coordination, **settings)
        started.append(brokers)
        brokers.start_all()
        return brokers

    yield make
    for brokers in started:
        brokers.end()


@pytest.fixture
def zookeepers(tmp_path: Path) -> Iterator[ZooKeepers]:
    servers = ZooKeepers(tmp_path, 3)
    try:
        servers.start_all()
        yield servers
    finally:
        servers.end()


def assert_good(result: Result, brokers: Brokers) -> None:
    assert result.is_good, "\n".join(result.lines())
    assert result.verdict.counts.unknown_share <= MOST_UNKNOWN, "\n".join(result.lines())
    assert result.verdict.counts.acknowledged > 500
    for node in brokers.nodes.values():
        assert "Traceback" not in node.log(), node.log()[-5000:]


@pytest.mark.slow
def test_a_wiped_disk_without_replicas_is_found_out(tmp_path, start):
    """The judge itself: what is certainly lost must break its rules."""
    plan = Plan(
        SEED, ["wipe"], replicas=1, min_insync_replicas=1, in_groups=False, compares_with_restarted=False
    )
    result = FaultRun(start(1), plan, tmp_path).run()
    assert not result.is_good
    assert result.verdict.violations["vanished"]


@pytest.mark.slow
def test_kills_restarts_and_wiped_disks_lose_nothing(tmp_path, start):
    kinds = ["kill leader and controller", "two elections", "bounce", "wipe", "reassign"]
    brokers = start(3)
    assert_good(
        FaultRun(
            brokers, Plan(SEED, schedule(SEED, len(kinds), kinds), hold_seconds=(0.5, 2.0)), tmp_path
        ).run(),
        brokers,
    )


@pytest.mark.slow
def test_a_leader_that_was_stopped_past_its_session_writes_nothing_any_more(tmp_path, start):
    brokers = start(3)
    assert_good(
        FaultRun(brokers, Plan(SEED, ["pause leader"], compares_with_restarted=False), tmp_path).run(),
        brokers,
    )


@pytest.mark.slow
@pytest.mark.java
def test_the_same_on_an_ensemble_of_zookeepers_with_java_clients(tmp_path, start, zookeepers):
    brokers = start(3, f"zookeeper://{zookeepers.connect}")
    plan = Plan(SEED, ["kill ZooKeeper's leader", "kill leader"], java=True, compares_with_restarted=False)
    assert_good(FaultRun(brokers, plan, tmp_path, zookeepers).run(), brokers)
