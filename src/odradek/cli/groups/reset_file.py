"""Offsets in a CSV file, as `reset-offsets --export` prints them.

topic,partition,offset          of one group
group,topic,partition,offset    of several
"""

from __future__ import annotations

import csv

from odradek.cli.options import UsageProblem, check_readable
from odradek.common.ids import TopicPartition


def read_offsets(path: str, group: str) -> dict[TopicPartition, int]:
    """The offsets for a group; UsageProblem for an invalid line."""
    check_readable(path)
    offsets: dict[TopicPartition, int] = {}
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        for number, fields in enumerate(csv.reader(file), 1):
            if not fields:
                continue
            if not _is_offset(fields):
                line = ",".join(fields)
                raise UsageProblem(f"{path}, line {number}: {line!r} is not [GROUP,]TOPIC,PARTITION,OFFSET")
            *owner, topic, partition, offset = fields
            if owner in ([], [group]):
                offsets[TopicPartition(topic, int(partition))] = int(offset)
    if not offsets:
        raise UsageProblem(f"{path} has no offset for group {group!r}")
    return offsets


def _is_offset(fields: list[str]) -> bool:
    numbers = fields[-2:]
    return len(fields) in (3, 4) and all(text.isascii() and text.isdecimal() for text in numbers)
