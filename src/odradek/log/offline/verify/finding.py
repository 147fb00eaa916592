"""Something that is wrong: where, what, and what to do about it."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple


class Damage(Enum):
    """What sort of thing is damaged; the value says what to do next."""

    BATCH = (
        "cut it there by `odradek log repair {directory}`, or copy the partition anew from another replica"
    )
    TAIL = "a broker cuts it when it starts after an unclean stop; else `odradek log repair {directory}`"
    INDEX = "it is derived: `odradek log repair {directory}` writes it anew from the log"
    EPOCHS = (
        "epochs are in the batches: `odradek log repair {directory}` writes the checkpoint anew from them"
    )
    SNAPSHOT = "it is derived: remove it, and the broker goes on from an older one and the log"
    CHECKPOINT = "remove the file: the broker then scans the logs and writes it anew"
    STRAY = (
        "`odradek log dump {path}` shows its records; to serve it, rename it to {partition} and start the "
        "broker on the store that has its topic; remove it if it is not needed"
    )
    LOST = "restore it from another replica or a backup"


class LogFinding(NamedTuple):
    """One problem in one file."""

    path: str
    position: int | None  # a byte in the file; None when it is about the file as a whole
    problem: str
    kind: Damage

    def __str__(self) -> str:
        where = self.path if self.position is None else f"{self.path}: byte {self.position}"
        return f"{where}: {self.problem}"

    @property
    def advice(self) -> str:
        """What to do next."""
        name = os.path.basename(self.path)
        return self.kind.value.format(
            directory=os.path.dirname(self.path), path=self.path, partition=name.rpartition(".")[0] or name
        )


Report = Callable[[LogFinding], None]
