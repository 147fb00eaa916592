from __future__ import annotations

from collections import Counter
from pathlib import Path

from odradek.testing.simulation.coverage import RARE_TRANSITIONS, counted_transitions, every_transition
from odradek.testing.simulation.schedules import TRANSACTIONS_EVERY, Report, run_schedule


def run(seed: int, directory: Path) -> tuple[Report, Counter[str]]:
    transitions: Counter[str] = Counter()
    with counted_transitions(transitions):
        return run_schedule(seed, directory, faults=3), transitions


def test_clients_survive_a_schedule_of_faults(tmp_path: Path) -> None:
    report, transitions = run(1, tmp_path)
    assert report.problems == []
    assert report.acknowledged > 50
    assert report.elections > 0
    assert report.faults.total() >= 3
    assert set(transitions) <= set(every_transition())


def test_a_seed_replays(tmp_path: Path) -> None:
    first, second = (run(2, tmp_path / name) for name in ("first", "second"))
    assert first == second


def test_transactions_of_both_protocols_survive_a_schedule_of_faults(tmp_path: Path) -> None:
    report, _ = run(TRANSACTIONS_EVERY, tmp_path)
    assert report.problems == []
    assert 5 < report.committed < report.transactions


def test_the_rare_transitions_are_some_of_all() -> None:
    assert set(every_transition()) > RARE_TRANSITIONS
