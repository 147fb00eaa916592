"""Checked when the clients of a run have ended: preferred leaders, open files, memory, files of the logs."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import psutil

from compat.java_tools import run_tool
from faults.cluster.brokers import Brokers, wait_for
from odradek.testing.history.operations import Fault, History, Outcome

PREFERRED_SECONDS = 60.0
"""Several times `leader.imbalance.check.interval.seconds` of these runs."""
MOST_EXTRA_FILES = 30
MOST_EXTRA_BYTES = 100_000_000
UNSERVED_SECONDS = 20.0
SEGMENT_PROBLEMS = re.compile(r"isvalid: false|Found |[Mm]ismatch|out of order|Could not")


class Resources(NamedTuple):
    """What a broker process holds at one moment."""

    open_files: int
    removed_files: tuple[str, ...]
    resident_bytes: int


def resources(pid: int) -> Resources:
    """Of a running process; connections count as files."""
    gc.collect()  # connections of our own clients that are garbage are open on the broker's side too
    links = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(str(entry.readlink()))
        except FileNotFoundError:
            continue
    removed = tuple(sorted(link for link in links if link.endswith(" (deleted)")))
    # A deleted partition is readable for `file.delete.delay.ms`; then its files must be closed.
    lasting = [link for link in links if "-delete/" not in link or link in removed]
    return Resources(len(lasting), removed, psutil.Process(pid).memory_info().rss)


def compare_with_restarted(brokers: Brokers, topics: list[str]) -> tuple[list[str], list[str]]:
    """What each broker holds, and what is too much: more than after a restart on the same files."""
    held = {number: resources(node.pid) for number, node in brokers.nodes.items()}
    for number in brokers.nodes:
        brokers.terminate(number)
        brokers.start(number)
        brokers.wait_in_sync(topics)
    needed = {number: resources(node.pid) for number, node in brokers.nodes.items()}
    notes = [
        f"broker {number}: {_described(held[number])}; restarted: {_described(needed[number])}"
        for number in held
    ]
    found = [f"broker {number}: {leak}" for number in held for leak in growth(held[number], needed[number])]
    return notes, found


def _described(one: Resources) -> str:
    return f"{one.open_files} open files, {one.resident_bytes >> 20} MiB"


def growth(held: Resources, needed: Resources) -> Iterator[str]:
    """What is too much in the first, compared with a process that has just been started."""
    if held.open_files > needed.open_files + MOST_EXTRA_FILES:
        yield f"{held.open_files} open files, {needed.open_files} after a restart"
    if held.removed_files:
        yield f"removed files are open: {', '.join(held.removed_files[:5])}"
    if held.resident_bytes > needed.resident_bytes + MOST_EXTRA_BYTES:
        yield f"{held.resident_bytes:,} bytes of memory, {needed.resident_bytes:,} after a restart"


def not_preferred(brokers: Brokers, topics: Iterable[str]) -> list[str]:
    """Partitions that another broker leads than the first of their replicas."""
    found = brokers.metadata().topics
    return [
        f"{topic}-{number} is led by {partition.leader} of {partition.replicas}"
        for topic in topics
        for number, partition in found[topic].partitions.items()
        if partition.leader != partition.replicas[0]
    ]


def wait_for_preferred_leaders(brokers: Brokers, topics: list[str]) -> float:
    """How long it took until each partition was led by its preferred replica, unasked."""
    return wait_for(
        lambda: not not_preferred(brokers, topics), f"preferred replicas lead {topics}", PREFERRED_SECONDS
    )


def unserved(history: History, kind: str, most_seconds: float = UNSERVED_SECONDS) -> Iterator[str]:
    """Times within faults of this kind in which nobody got an acknowledgement, or nobody read a record."""
    acknowledged = sorted(send.at_ms for send in history.sends if send.outcome is Outcome.ACKNOWLEDGED)
    polled = sorted(poll.at_ms for poll in history.polls if poll.reads)
    for fault in history.faults:
        if fault.kind == kind:
            for what, moments in (("acknowledged", acknowledged), ("read", polled)):
                gap = _longest_gap(fault, moments)
                if gap > most_seconds:
                    yield f"{kind}: nothing was {what} for {gap:.1f} s"


def _longest_gap(fault: Fault, moments: list[int]) -> float:
    within = [one for one in moments if fault.at_ms < one < fault.healed_ms]
    edges = [fault.at_ms, *within, fault.healed_ms]
    return max(later - earlier for earlier, later in pairwise(edges)) / 1000


def verify_problems(log_dirs: Iterable[Path]) -> list[str]:
    """What `odradek log verify` finds; the brokers must be stopped."""
    command = [sys.executable, "-m", "odradek.cli.main", "log", "verify", *map(str, log_dirs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"log verify: {(done.stdout + done.stderr)[:3000]}"]


def dump_problems(log_dirs: Sequence[Path]) -> list[str]:
    """What Kafka's DumpLogSegments complains about in segments and their indexes."""
    return [
        *_dump_problems(_partition_files(log_dirs, "*.log")),
        *_dump_problems(_partition_files(log_dirs, "*index"), "--index-sanity-check"),
    ]


def _partition_files(log_dirs: Sequence[Path], pattern: str) -> list[str]:
    return [
        str(path)
        for log_dir in log_dirs
        for path in sorted(log_dir.glob(f"*-[0-9]*/{pattern}"))
        if path.stat().st_size
    ]


def _dump_problems(files: list[str], *flags: str) -> list[str]:
    if not files:
        return []
    done = run_tool("DumpLogSegments", *flags, "--files", ",".join(files))
    printed = (done.stdout + done.stderr).splitlines()
    found = [line for line in printed if SEGMENT_PROBLEMS.search(line)]
    if done.returncode:
        found.append(f"ended with {done.returncode}: {done.stderr[-500:]}")
    dumped = sum(line.startswith("Dumping ") for line in printed)
    if dumped != len(files):
        found.append(f"{dumped} of {len(files)} files were dumped")
    return [f"DumpLogSegments: {line}" for line in found[:10]]
