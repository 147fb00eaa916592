"""Parses partition patterns: `orders`, `orders:0`, `orders:0-3` (3 left out), `ord.*:2-`, by commas."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from odradek.cli.options import UsageProblem
from odradek.cli.topic_names import compile_regex

_RANGE = re.compile(r"(\d*)(-?)(\d*)")


class PartitionPattern(NamedTuple):
    """A regular expression for topics with a range of partitions, the end left out; None is open."""

    topic: str
    low: int | None = None
    high: int | None = None

    def has(self, partition: int) -> bool:
        """Whether the range covers a partition."""
        return (self.low or 0) <= partition and (self.high is None or partition < self.high)


def parse_topic_partitions(text: str, *, regex: bool) -> list[PartitionPattern]:
    """The grammar of kafka-get-offsets.sh --topic-partitions; topics are regular expressions with `regex`."""
    parsed = [_parse_one(one) for one in text.split(",") if one]
    return [one if regex or not one.topic else one._replace(topic=re.escape(one.topic)) for one in parsed]


def parse_numbers(text: str) -> list[int]:
    """Partitions by number: 0,2,5."""
    try:
        numbers = [int(one) for one in text.split(",")]
    except ValueError:
        raise UsageProblem(f"--partitions {text!r} is not a list of numbers such as 0,1,2") from None
    if any(number < 0 for number in numbers):
        raise UsageProblem(f"--partitions {text!r} has a negative number")
    return numbers


def _parse_one(text: str) -> PartitionPattern:
    topic, colon, partitions = text.partition(":")
    if not colon:
        return PartitionPattern(topic)
    found = _RANGE.fullmatch(partitions)
    if found is None or partitions in ("", "-"):
        raise UsageProblem(f"{text!r} is not TOPIC:PARTITION, TOPIC:FIRST-LAST, TOPIC:FIRST- or TOPIC:-LAST")
    low, dash, high = found.groups()
    if not dash:
        return PartitionPattern(topic, int(low), int(low) + 1)
    return PartitionPattern(topic, int(low) if low else None, int(high) if high else None)


def selected(patterns: Iterable[PartitionPattern], topic: str, partitions: Iterable[int]) -> list[int]:
    """The partitions of a topic that a pattern covers."""
    fitting = [one for one in patterns if compile_regex(one.topic or ".*").fullmatch(topic)]
    return [number for number in partitions if any(one.has(number) for one in fitting)]
