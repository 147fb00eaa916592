"""Kills at each step of transactions, judged by the history checker: a part of `make faults`.

    python -m faults.transactions.main --runs 3 --seed 1

A run is repeated with its seed; histories and logs stay in --directory.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from random import Random

import click
from rich.console import Console

from faults.transactions.kill_run import KillRun, every_round


@click.command()
@click.option("--runs", type=int, default=3, show_default=True, help="Each has the next seed.")
@click.option("--rounds", type=int, default=None, help="Only so many of a run; all 96 by default.")
@click.option("--seed", type=int, default=None, help="The time by default.")
@click.option(
    "--directory", type=click.Path(path_type=Path), default=None, help="Kept; temporary by default."
)
def main(runs: int, rounds: int | None, seed: int | None, directory: Path | None) -> None:
    """Kill brokers and clients at each step of transactions, and judge what they saw."""
    console = Console(soft_wrap=True)
    first = int(time.time()) if seed is None else seed
    place = directory or Path(tempfile.mkdtemp(prefix="odradek-transactions-"))
    is_good = True
    for chosen in range(first, first + runs):
        console.print(f"seed {chosen}, histories and logs in {place / str(chosen)}", highlight=False)
        planned = every_round(Random(chosen))[:rounds]
        verdict, failures = KillRun(
            chosen, planned, place / str(chosen), lambda line: console.print(f"  {line}", highlight=False)
        ).run()
        for line in (*verdict.lines(), *failures):
            console.print(line, highlight=False)
        is_good = is_good and verdict.is_good and not failures
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
