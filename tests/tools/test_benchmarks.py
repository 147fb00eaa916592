"""Which scripts `make bench` runs."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
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
        "replication/idle.py",
        "replication/partitions.py",
        "replication/throughput.py",
    ]


def test_what_runs_beside_run_py_exists():
    run = load_run()
    chosen = {str(path) for path in run.scripts()}
    assert chosen.issuperset(run.BESIDE_RUN)


def transactions_report(figures):
    """In a process of its own, because the benches have modules with the names of others."""
    program = "import json, run, sys; print(run.report(json.load(sys.stdin)))"
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT / "bench/transactions",
        input=json.dumps(figures),
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_figures_of_transactions_are_printed_again_as_far_as_they_were_measured():
    row = {"rate": [100.0, 110.0], "p50": [1.0, 1.5], "p99": [2.0, 3.0]}
    rows = {"1 records, our client, v2": {"odradek": row, "Kafka": row}}
    assert "1 records, our client, v2" in transactions_report({"rows": rows})
    opened = {"rows": rows, "open_ids": 500, "opened": {"odradek": 30.0, "Kafka": 20.0}}
    assert "30 by odradek, 20 by Kafka" in transactions_report(opened)
    both = transactions_report(opened | {"rows_while_open": rows})
    assert both.count("1 records, our client, v2") == 2
