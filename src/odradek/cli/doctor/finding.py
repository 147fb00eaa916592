"""One thing that is wrong, its reason, and the next step."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

_NAMES_SHOWN = 5


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """Something does not work."""

    WARNING = "warning"
    """Everything works, but one more failure may stop something."""


class Finding(NamedTuple):
    """`names` are the partitions, brokers or directories that it is about."""

    severity: Severity
    problem: str
    reason: str
    advice: str
    names: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """For people: the problem, then why and what next."""
        names = f": {shortened(self.names)}" if self.names else ""
        return [
            f"{self.severity}: {self.problem}{names}",
            f"    why: {self.reason}",
            f"    next: {self.advice}",
        ]


def shortened(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"
