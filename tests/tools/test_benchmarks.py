"""Which scripts `make bench` runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def load_run():
    spec = importlib.util.spec_from_file_location("bench_run", ROOT / "bench/run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_folder_is_run_by_its_run_py_and_what_that_leaves_out():
    run = load_run()
    assert [str(path) for path in run.scripts(["spark"])] == [
        "spark/backlog.py",
        "spark/exactly_once.py",
        "spark/run.py",
        "spark/scaling.py",
    ]
    assert [str(path) for path in run.scripts(["transactions"])] == ["transactions/run.py"]


def test_modules_of_the_benchmarks_are_not_run():
    run = load_run()
    assert [str(path) for path in run.scripts(["replication"])] == [
        "replication/failover.py",
        "replication/partitions.py",
        "replication/throughput.py",
    ]


def test_what_runs_beside_run_py_exists():
    run = load_run()
    chosen = {str(path) for path in run.scripts()}
    assert chosen.issuperset(run.BESIDE_RUN)
