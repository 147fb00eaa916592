"""Runs schedules of the simulated cluster in several processes; fails if one of them breaks a rule.

python tests/simulation/run.py --schedules 1000
python tests/simulation/run.py --every-bug --schedules 400
python tests/simulation/run.py --pinned-bugs              by the seeds that are known to find them
python tests/simulation/run.py --seed 27 --verbose        the same run again, with the brokers' logs
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from odradek.testing.simulation.coverage import RARE_TRANSITIONS, counted_transitions, every_transition
from odradek.testing.simulation.planted_bugs import BUGS_OF_TRANSACTIONS, FOUND_BY, PLANTED_BUGS
from odradek.testing.simulation.schedules import run_schedule

HERE = Path(__file__).resolve()
LEAST_FAULTS = 3
SEEDS_AT_ONCE = 20
TRANSITIONS = "transitions"
ENOUGH_SCHEDULES = 1000
"""So many make every state transition that is not rare."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=4, help="faults in each schedule")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, help="run this schedule only")
    parser.add_argument("--bug", choices=sorted(PLANTED_BUGS), help="plant a bug, which should be found")
    parser.add_argument("--every-bug", action="store_true", help="plant each bug in turn; each must be found")
    parser.add_argument("--pinned-bugs", action="store_true", help="only the bugs and seeds that are pinned")
    parser.add_argument("--transactions", action="store_true", help="transactions in every schedule")
    parser.add_argument("--verbose", action="store_true", help="show the brokers' logs")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options, json.loads(options.worker))
    if options.every_bug or options.pinned_bugs:
        return find_bugs(options, sorted(FOUND_BY if options.pinned_bugs else PLANTED_BUGS))
    seeds = range(options.first_seed, options.first_seed + options.schedules)
    return supervise(options, [options.seed] if options.seed is not None else list(seeds))


def find_bugs(options: argparse.Namespace, bugs: Sequence[str]) -> int:
    """Plant one bug after the other; 1 if the schedules do not find one.

    The seeds that have found it before come first; they may not any more when something else has changed.
    """
    missed = []
    for bug in bugs:
        options.bug, options.transactions = bug, bug in BUGS_OF_TRANSACTIONS
        started, found = time.monotonic(), None
        for batch in _batches(options, bug):
            found = _first_problem(options, batch)
            if found:
                break
        else:
            missed.append(bug)
        print(f"{bug}: {found or 'NOT FOUND'} ({time.monotonic() - started:.0f} s)", flush=True)
    print(f"{len(bugs) - len(missed)} passed, {len(missed)} failed")
    return 1 if missed else 0


def _batches(options: argparse.Namespace, bug: str) -> list[list[int]]:
    """The seeds to try, those first that have found it before."""
    pinned = list(FOUND_BY.get(bug, ()))
    if options.pinned_bugs:
        return [pinned]
    seeds = range(options.first_seed, options.first_seed + options.schedules)
    rest = [list(seeds[at : at + SEEDS_AT_ONCE]) for at in range(0, len(seeds), SEEDS_AT_ONCE)]
    return [pinned, *rest] if pinned else rest


def _first_problem(options: argparse.Namespace, seeds: list[int]) -> str | None:
    """What the schedules of these seeds find; None if that is nothing."""
    workers = _start_workers(options, seeds)
    reports = sorted(_lines(workers), key=lambda report: int(report["seed"]))
    for worker in workers:
        worker.wait()
    found = [
        f"seed {report['seed']}: {report['problems'][0][:150]}" for report in reports if report["problems"]
    ]
    return found[0] if found else None


def supervise(options: argparse.Namespace, seeds: list[int]) -> int:
    console = Console()
    started = time.monotonic()
    workers = _start_workers(options, seeds)
    reports: list[dict[str, Any]] = []
    transitions: Counter[str] = Counter()
    with Progress(console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("schedules", total=len(seeds))
        for line in _lines(workers):
            transitions.update(line.pop(TRANSITIONS))
            reports.append(line)
            progress.advance(bar)
    failed = sum(worker.wait() != 0 for worker in workers)
    return _report(options, reports, transitions, len(seeds), failed, time.monotonic() - started)


def _start_workers(options: argparse.Namespace, seeds: list[int]) -> list[subprocess.Popen[str]]:
    return [
        _start_worker(options, seeds[job :: options.jobs]) for job in range(min(options.jobs, len(seeds)))
    ]


def _start_worker(options: argparse.Namespace, seeds: list[int]) -> subprocess.Popen[str]:
    arguments = [sys.executable, str(HERE), "--worker", json.dumps(seeds)]
    arguments += ["--faults", str(options.faults), "--brokers", str(options.brokers)]
    # The order of sets must not depend on the process, or a seed would not replay.
    arguments += ["--bug", options.bug] if options.bug else []
    arguments += ["--transactions"] * options.transactions
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    return subprocess.Popen(
        arguments + ["--verbose"] * options.verbose, stdout=subprocess.PIPE, text=True, env=environment
    )


def _lines(workers: list[subprocess.Popen[str]]) -> Iterator[dict[str, Any]]:
    """The reports of all workers; each prints about as often as the others."""
    running = list(workers)
    while running:
        for worker in list(running):
            assert worker.stdout is not None
            line = worker.stdout.readline()
            if line:
                yield json.loads(line)
            else:
                running.remove(worker)


def _report(
    options: argparse.Namespace,
    reports: list[dict[str, Any]],
    transitions: Counter[str],
    wanted: int,
    failed_workers: int,
    seconds: float,
) -> int:
    faults: Counter[str] = Counter()
    for report in reports:
        faults.update(report["faults"])
    acknowledged = sum(report["acknowledged"] for report in reports)
    elections = sum(report["elections"] for report in reports)
    hours = sum(report["virtual_s"] for report in reports) / 3600
    print(f"{len(reports)} schedules in {seconds:.0f} s, {hours:.1f} h simulated")
    print(f"faults: {', '.join(f'{count} {kind}' for kind, count in faults.most_common())}")
    transactions = sum(report["transactions"] for report in reports)
    committed = sum(report["committed"] for report in reports)
    print(f"{acknowledged} records acknowledged, {elections} elections")
    print(f"{transactions} transactions, {committed} of them committed")
    missing = [name for name in every_transition() if name not in transitions]
    print(f"state transitions: {len(every_transition()) - len(missing)} of {len(every_transition())} made")
    for name in missing:
        print(f"    never: {name}")
    lost = [name for name in missing if name not in RARE_TRANSITIONS and wanted >= ENOUGH_SCHEDULES]
    if lost:
        print(f"{len(lost)} state transitions that such schedules have made before: {', '.join(lost)}")
    for report in reports:
        count = sum(report["faults"].values())
        if count < LEAST_FAULTS or not report["elections"]:
            report["problems"].append(f"proves little: {count} faults, {report['elections']} elections")
    bad = [report for report in reports if report["problems"]]
    for report in bad:
        print(f"seed {report['seed']}: {len(report['problems'])} problems")
        for problem in report["problems"][:3]:
            print(f"    {problem[:300]}")
        again = "--transactions " * options.transactions
        again += f"--seed {report['seed']} --faults {options.faults} --brokers {options.brokers}"
        print(f"    again: python {HERE.name} {again} --verbose")
    good = len(reports) - len(bad)
    print(f"{good} passed, {wanted - good} failed")
    return 1 if bad or lost or failed_workers or len(reports) < wanted else 0


def work(options: argparse.Namespace, seeds: list[int]) -> int:
    """Run these schedules, and print a line for each."""
    logging.basicConfig(level=logging.INFO if options.verbose else logging.CRITICAL, format="%(message)s")
    planted = PLANTED_BUGS[options.bug]() if options.bug else contextlib.nullcontext()
    with planted:
        _work(options, seeds)
    return 0


def _work(options: argparse.Namespace, seeds: list[int]) -> None:
    gc.disable()  # a collection would close coroutines of killed processes in the middle of another run
    gc.freeze()  # nor need those that we make look at all modules again
    for seed in seeds:
        transitions: Counter[str] = Counter()
        with (
            tempfile.TemporaryDirectory(dir=_fast_directory()) as directory,
            counted_transitions(transitions),
        ):
            report = run_schedule(
                seed,
                Path(directory),
                brokers=options.brokers,
                faults=options.faults,
                transactions=options.transactions or None,
            )
        print(json.dumps({**vars(report), TRANSITIONS: transitions}), flush=True)
        gc.collect()


def _fast_directory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


if __name__ == "__main__":
    sys.exit(main())
