"""Errors of pipeline files, with the place in the file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from odradek.common.errors import OdradekError

_PACKAGE = str(Path(__file__).resolve().parents[1])


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written: a file, the line of the whole, and the lines of its keys."""

    file: str = ""
    line: int = 0
    key_lines: Mapping[str, int] = field(default_factory=dict)

    def at(self, key: str | None = None) -> str:
        """The place as editors understand it, `file:line`; empty when it is not known."""
        if not self.file:
            return ""
        line = self.key_lines.get(key, self.line) if key is not None else self.line
        return f"{self.file}:{line}" if line else self.file


NOWHERE = Place()


class PipelineError(OdradekError):
    """A pipeline that cannot be used; the message begins with the place and says what to do."""

    def __init__(self, message: str, place: Place = NOWHERE, key: str | None = None) -> None:
        self.sentence = message
        self.place = place
        where = place.at(key)
        super().__init__(f"{where}: {message}" if where else message)


def calling_place() -> Place:
    """The line outside of this package that is being executed: the declaration in a Python file."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_back is None:
            return NOWHERE
        frame = frame.f_back
    # "<string>" is the __init__ that dataclasses make.
    while frame.f_code.co_filename == "<string>" and frame.f_back is not None:
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)
