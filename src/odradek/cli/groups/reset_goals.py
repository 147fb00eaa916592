"""Computes the new offset of each partition. No I/O, no clock.

--to-earliest, --to-latest    the ends of the log
--to-current                  where it is; the end of the log without an offset
--to-offset N                 this offset
--shift-by N                  forward by N records, or back if negative
--to-datetime, --by-duration  the first record at or after that time; the end of the log if there is none
--from-file                   the offsets in the file

An offset outside the log becomes the nearest end of it, with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple

from odradek.cli.options import UsageProblem
from odradek.common.ids import TopicPartition

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


class Target(Enum):
    """The kind of reset."""

    EARLIEST = "--to-earliest"
    LATEST = "--to-latest"
    CURRENT = "--to-current"
    OFFSET = "--to-offset"
    SHIFT = "--shift-by"
    TIMESTAMP = "--to-datetime"
    FILE = "--from-file"


@dataclass(frozen=True, slots=True)
class Goal:
    """The reset to do: `number` is an offset, a distance or milliseconds, as `target` says."""

    target: Target
    number: int = 0
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a partition: its ends, what is committed, and the offset found for a timestamp."""

    earliest: int
    latest: int
    committed: int | None = None
    at_timestamp: int | None = None


class NewOffset(NamedTuple):
    """The new offset of a partition, and a note if it had to be adjusted."""

    offset: int
    note: str | None = None


def new_offset(goal: Goal, partition: TopicPartition, known: Known) -> NewOffset:
    """The new offset of this partition; UsageProblem if there is none."""
    match goal.target:
        case Target.EARLIEST:
            return NewOffset(known.earliest)
        case Target.LATEST:
            return NewOffset(known.latest)
        case Target.CURRENT:
            return NewOffset(known.latest if known.committed is None else known.committed)
        case Target.OFFSET:
            return _in_range(goal.number, partition, known)
        case Target.FILE:
            return _in_range(goal.offsets[partition], partition, known)
        case Target.TIMESTAMP:
            return _at_time(partition, known)
        case Target.SHIFT:
            if known.committed is None:
                raise UsageProblem(f"--shift-by: the group has no offset of {partition} to shift")
            return _in_range(known.committed + goal.number, partition, known)


def _in_range(offset: int, partition: TopicPartition, known: Known) -> NewOffset:
    if offset < known.earliest:
        return NewOffset(
            known.earliest, f"{partition} begins at offset {known.earliest}; it cannot be {offset}"
        )
    if offset > known.latest:
        return NewOffset(known.latest, f"{partition} ends at offset {known.latest}; it cannot be {offset}")
    return NewOffset(offset)


def _at_time(partition: TopicPartition, known: Known) -> NewOffset:
    if known.at_timestamp is None:
        return NewOffset(known.latest, f"{partition} has no record that late; it is set to the end")
    return NewOffset(known.at_timestamp)


def parse_datetime_ms(text: str) -> int:
    """2026-01-31T12:00:00.000 in milliseconds since 1970; without a zone it is UTC, as for Kafka's tool."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageProblem(
            f"--to-datetime {text!r} is no date such as 2026-01-31T12:00:00.000 or 2026-01-31T12:00+02:00"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_duration_ms(text: str) -> int:
    """PnDTnHnMnS in milliseconds."""
    found = _DURATION.fullmatch(text)
    parts = {name: float(part) for name, part in (found.groupdict() if found else {}).items() if part}
    if not parts:
        raise UsageProblem(f"--by-duration {text!r} is no duration such as P7D, PT12H or P1DT6H30M")
    units_ms = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}
    return round(sum(part * units_ms[name] for name, part in parts.items()))
