"""Timestamps on the command line: a word, milliseconds since 1970, or a date."""

from __future__ import annotations

from datetime import datetime

from odradek.cli.options import UsageProblem

WORDS = {"latest": -1, "earliest": -2, "max-timestamp": -3, "earliest-local": -4, "latest-tiered": -5}


def parse_timestamp(text: str) -> int:
    """The timestamp of ListOffsets: a negative number for a word, else milliseconds since 1970.

    A date without a time zone is in local time.
    """
    if text in WORDS:
        return WORDS[text]
    try:
        number = int(text)
    except ValueError:
        return parse_date_ms(text)
    if number < min(WORDS.values()):
        raise UsageProblem(f"{number} is before 1970")
    return number


def parse_date_ms(text: str) -> int:
    """A date as 2026-01-31, 2026-01-31T12:00 or 2026-01-31T12:00:00+02:00, in milliseconds since 1970."""
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        words = ", ".join(WORDS)
        raise UsageProblem(
            f"{text!r} is not a timestamp; give {words}, milliseconds since 1970, "
            "or a date such as 2026-01-31T12:00"
        ) from None
