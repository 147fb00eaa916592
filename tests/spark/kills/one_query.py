"""One exactly-once query from a topic into another through a plan of kills, and what it must write."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from faults.cluster.brokers import Brokers
from spark.kills.kill_run import Kill, KillRun, check_exactly_once, committed_values, produce

FOREACH_BATCH, DATA_SOURCE = FORMS = ("foreach-batch", "data-source")
PROGRAM = Path(__file__).with_name("query_program.py")
ROWS_A_BATCH = 100
SPARE_BATCHES = 3
"""More micro-batches than kills: a plan comes to its end before the rows do."""


def through_kills(
    brokers: Brokers,
    form: str,
    plan: Sequence[Kill],
    directory: Path,
    *,
    master: str = "local[2]",
    report: Callable[[str], None] = print,
    environment: Mapping[str, str] | None = None,
) -> KillRun:
    """Run the query to its end; the rows are checked."""
    count = ROWS_A_BATCH * (len(plan) + SPARE_BATCHES)
    source, target = "source", "target"
    for topic, partitions in ((source, 2), (target, 3)):
        brokers.create_topic(topic, partitions, min(3, len(brokers.nodes)))
    produce(brokers.bootstrap, source, 2, count)
    arguments = [brokers.bootstrap, form, source, target, str(directory / "checkpoint"), master]
    run = KillRun(
        brokers,
        [sys.executable, str(PROGRAM), *arguments],
        plan,
        target,
        directory,
        (source, target),
        report=report,
        environment=environment or {},
    )
    run.run()
    check_exactly_once(committed_values(brokers.bootstrap, target), count)
    return run
