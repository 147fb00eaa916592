"""Why a run of the cleaner stopped early."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from odradek.common.errors import OdradekError
from odradek.log.segment.segment import Segment
from odradek.records.errors import RecordsError


class CleaningAborted(OdradekError):
    """The log was truncated, deleted or paused during a run; not a fault, the next run starts over."""


class UncleanableLog(OdradekError):
    """A segment has invalid batches: its files are left as they are, for repair or another replica."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")


@contextlib.contextmanager
def reading(segment: Segment) -> Iterator[None]:
    """Convert errors in the bytes to UncleanableLog, which names the file."""
    try:
        yield
    except RecordsError as error:
        raise UncleanableLog(segment.log.path, str(error)) from error
