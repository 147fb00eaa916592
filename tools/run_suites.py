"""Runs the suites of tools/suites.toml one after another, each within its written time budget.

A suite that fails, or outlives its budget, fails the run. The closing table says where the time went;
the last words of every failed suite stand right before it, where the reader of a long log looks first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
TIMED_OUT = 124
LAST_WORDS_BYTES = 6_000


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


class LastWords:
    """Passes a suite's output on as it comes and remembers its end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = b""
        self._reader = threading.Thread(target=self._pass_on, daemon=True)
        self._reader.start()

    def _pass_on(self) -> None:
        while chunk := os.read(self._stream.fileno(), 65536):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
            self._kept = (self._kept + chunk)[-LAST_WORDS_BYTES:]

    def text(self) -> str:
        self._reader.join(timeout=5)  # a stray child may hold the pipe open for ever
        if not self._reader.is_alive():
            self._stream.close()
        return self._kept.decode(errors="replace")


@dataclass(frozen=True)
class SuiteResult:
    code: int
    seconds: float
    last_words: str

    @property
    def verdict(self) -> str:
        return {0: "ok", TIMED_OUT: "over budget"}.get(self.code, f"failed ({self.code})")


def run(suite: Suite) -> SuiteResult:
    """Run one suite in a process group of its own, so that a time-out takes its children with it."""
    started = time.monotonic()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(
        ["bash", "-c", suite.command],
        cwd=ROOT,
        start_new_session=True,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    last_words = LastWords(process.stdout)
    try:
        code = process.wait(timeout=suite.budget_seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        code = TIMED_OUT
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return SuiteResult(code, time.monotonic() - started, last_words.text())


def table_of(outcomes: dict[Suite, SuiteResult]) -> Table:
    table = Table(title="suites", title_justify="left")
    for column in ("suite", "result", "seconds", "budget"):
        table.add_column(column, justify="right" if column in ("seconds", "budget") else "left")
    for suite, outcome in outcomes.items():
        table.add_row(suite.name, outcome.verdict, f"{outcome.seconds:.1f}", str(suite.budget_seconds))
    return table


def main(which: str) -> int:
    console = Console(soft_wrap=True)
    wanted = {"all": lambda suite: True, "check": lambda suite: suite.in_check}
    suites = list(filter(wanted.get(which, lambda suite: suite.name == which), load_suites()))
    if not suites:
        console.print(f"no suite named {which!r}; tools/suites.toml lists them")
        return 2
    outcomes = {}
    for suite in suites:
        console.rule(f"{suite.name} (budget {suite.budget_seconds} s)", align="left")
        outcomes[suite] = run(suite)
    failed = {suite: outcome for suite, outcome in outcomes.items() if outcome.code}
    for suite, outcome in failed.items():
        console.rule(f"the end of what {suite.name} said ({outcome.verdict})", align="left")
        print(outcome.last_words)
    console.print(table_of(outcomes))
    print(f"suites: {len(suites) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "all"))
