"""Runs the suites of tools/suites.toml one after another, each within its written time budget.

A suite that fails, or outlives its budget, fails the run; the closing table says where the time went.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
TIMED_OUT = 124


@dataclass(frozen=True)
class Suite:
    name: str
    command: str
    budget_seconds: int
    in_check: bool


def load_suites() -> list[Suite]:
    rows = tomllib.loads((ROOT / "tools/suites.toml").read_text())["suite"]
    return [
        Suite(row["name"], row["command"], row["budget_seconds"], row.get("check", False)) for row in rows
    ]


def run(suite: Suite) -> tuple[int, float]:
    """Run one suite in a process group of its own, so that a time-out takes its children with it."""
    started = time.monotonic()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        ["bash", "-c", suite.command], cwd=ROOT, start_new_session=True, env=environment
    )
    try:
        code = process.wait(timeout=suite.budget_seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        code = TIMED_OUT
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return code, time.monotonic() - started


def main(which: str) -> int:
    console = Console(soft_wrap=True)
    suites = [suite for suite in load_suites() if which == "all" or suite.in_check or suite.name == which]
    if not suites:
        console.print(f"no suite named {which!r}; tools/suites.toml lists them")
        return 2
    table = Table(title="suites", title_justify="left")
    for column in ("suite", "result", "seconds", "budget"):
        table.add_column(column, justify="right" if column in ("seconds", "budget") else "left")
    failed = 0
    for suite in suites:
        console.rule(f"{suite.name} (budget {suite.budget_seconds} s)", align="left")
        code, seconds = run(suite)
        verdict = "ok" if code == 0 else "over budget" if code == TIMED_OUT else f"failed ({code})"
        failed += code != 0
        table.add_row(suite.name, verdict, f"{seconds:.1f}", str(suite.budget_seconds))
    console.print(table)
    print(f"suites: {len(suites) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "all"))
