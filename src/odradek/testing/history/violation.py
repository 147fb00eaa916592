"""A contradiction that a rule has found in a history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from odradek.testing.history.view import View


class Violation(NamedTuple):
    """One contradiction: the rule, the place and what was found there."""

    rule: str
    place: str
    offset: int
    found: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.place} at offset {self.offset}: {self.found}"


Rule = Callable[[View], Iterator[Violation]]
