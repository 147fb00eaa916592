"""Parses start and stop positions in kcat's syntax.

beginning, earliest     the oldest record there is
end, latest             only new records
1000                    this offset
-10                     ten records before the end, in each partition
s@1700000000000         the first record at or after this time; also a date: s@2026-01-31T12:00
e@1700000000000         stop before the first record at or after this time
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from odradek.cli.offsets.timestamps import parse_date_ms
from odradek.cli.options import UsageProblem


class Start(Enum):
    """How the first offset of a partition is found."""

    BEGINNING = "beginning"
    END = "end"
    OFFSET = "offset"
    BEFORE_END = "before end"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Span:
    """What to read of each partition: `number` is an offset, a count or milliseconds, as `start` says."""

    start: Start = Start.BEGINNING
    number: int = 0
    stop_ms: int | None = None

    @property
    def auto_offset_reset(self) -> str:
        """Where a group without offsets starts, and where to continue if the next offset was deleted."""
        return "latest" if self.start is Start.END else "earliest"

    @property
    def is_for_groups(self) -> bool:
        """Whether it can be used with a group, whose committed offsets take precedence."""
        return self.start in (Start.BEGINNING, Start.END) and self.stop_ms is None


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of a partition: its oldest offset, its end, and the offset found for a timestamp."""

    earliest: int
    latest: int
    at_timestamp: int | None = None


def parse_span(texts: tuple[str, ...]) -> Span:
    """Parse the values of `-o`; UsageProblem if one is invalid."""
    start: tuple[Start, int] | None = None
    stop_ms: int | None = None
    for text in texts:
        if text.startswith("e@"):
            stop_ms = _parse_ms(text[2:])
            continue
        if start is not None:
            raise UsageProblem(f"-o {text}: there is only one place to begin")
        start = _parse_start(text)
    return Span(*(start or (Start.BEGINNING, 0)), stop_ms)


def first_offset(span: Span, bounds: Bounds) -> int:
    """The start offset of a partition."""
    match span.start:
        case Start.BEGINNING:
            return bounds.earliest
        case Start.END:
            return bounds.latest
        case Start.OFFSET:
            return max(bounds.earliest, span.number)
        case Start.BEFORE_END:
            return max(bounds.earliest, bounds.latest - span.number)
        case Start.TIMESTAMP:
            return bounds.latest if bounds.at_timestamp is None else bounds.at_timestamp


def _parse_start(text: str) -> tuple[Start, int]:
    if text in ("beginning", "earliest"):
        return Start.BEGINNING, 0
    if text in ("end", "latest"):
        return Start.END, 0
    if text.startswith("s@"):
        return Start.TIMESTAMP, _parse_ms(text[2:])
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal():
        raise UsageProblem(f"-o {text!r} is none of beginning, end, OFFSET, -COUNT, s@TIME, e@TIME, json")
    return (Start.BEFORE_END if text.startswith("-") else Start.OFFSET), int(digits)


def _parse_ms(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() else parse_date_ms(text)
