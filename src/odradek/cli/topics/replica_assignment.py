"""Reads `--replica-assignment`: partitions by commas, their brokers by colons. 0:1,1:2 places two."""

from __future__ import annotations

from odradek.cli.options import UsageProblem


def parse_replica_assignment(text: str | None, has_counts: bool = False) -> dict[int, list[int]]:
    """The brokers of each partition, from 0 on; empty without a text."""
    if text is None:
        return {}
    if has_counts:
        raise UsageProblem(
            "--replica-assignment says it all; leave out --partitions and --replication-factor"
        )
    try:
        placed = [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
    except ValueError:
        raise UsageProblem(f"--replica-assignment {text!r} is not like 0:1,1:2") from None
    for partition, brokers in enumerate(placed):
        if len(set(brokers)) != len(brokers):
            raise UsageProblem(f"--replica-assignment names a broker twice for partition {partition}")
        if len(brokers) != len(placed[0]):
            raise UsageProblem(
                f"--replica-assignment gives partition {partition} {len(brokers)} replicas and partition 0 "
                f"{len(placed[0])}; all need as many"
            )
    return dict(enumerate(placed))
