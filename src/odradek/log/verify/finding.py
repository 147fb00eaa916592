"""Something that is wrong: where, what, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

REPAIR = "cut it there by `odradek log repair {directory}`, or copy the partition anew from another replica"
TORN = "a broker cuts it when it starts after an unclean stop; else `odradek log repair {directory}`"
REBUILD = "it is derived: `odradek log repair {directory}` writes it anew from the log"
REMOVE = "it is derived: remove it, and the broker goes on from an older one and the log"
CHECKPOINT = "remove the file: the broker then scans the logs and writes it anew"
RESTORE = "restore it from another replica or a backup"


class Finding(NamedTuple):
    """One problem in one file."""

    path: str
    position: int | None  # a byte in the file; None when it is about the file as a whole
    problem: str
    advice: str

    def __str__(self) -> str:
        where = self.path if self.position is None else f"{self.path}: byte {self.position}"
        return f"{where}: {self.problem}"


Report = Callable[[Finding], None]
