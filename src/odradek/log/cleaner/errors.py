"""Why a run of the cleaner ended before it was done."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from odradek.common.errors import OdradekError
from odradek.log.segment.segment import Segment
from odradek.records.errors import RecordsError


class CleaningAborted(OdradekError):
    """The log was truncated, deleted or paused under a run; nothing is wrong, the next run begins anew."""


class UncleanableLog(OdradekError):
    """A segment holds what is no batch: its files are left alone, for another replica or a person to mend."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")


@contextlib.contextmanager
def reading(segment: Segment) -> Iterator[None]:
    """Faults in the bytes become UncleanableLog, which names the file."""
    try:
        yield
    except RecordsError as error:
        raise UncleanableLog(segment.log.path, str(error)) from error
