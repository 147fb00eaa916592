"""What one client does in a run of kills, and the words in which the processes speak of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

TOPIC, PARTITIONS, GROUP = "kills", 3, "copiers"
STEPS_OF_V1 = (
    "InitProducerId",
    "AddPartitionsToTxn",
    "first Produce",
    "second Produce",
    "AddOffsetsToTxn",
    "TxnOffsetCommit",
    "EndTxn",
)
STEPS_OF_V2 = tuple(step for step in STEPS_OF_V1 if not step.startswith("Add"))
DONE = "done"


@dataclass(frozen=True)
class Job:
    """Three transactions of one producer; the second one ends as `commits` says, the others are committed.

    `number`: of the job, which makes values and offsets unique. `is_killed`: it does not end by itself.
    """

    number: int
    addresses: Sequence[str]
    transactional_id: str
    is_v2: bool
    commits: bool
    is_killed: bool
    timeout_ms: int
    directory: str

    @property
    def prefix(self) -> str:
        """What all its values begin with."""
        return f"{self.transactional_id}.{self.number}."

    def encode(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, line: str) -> Job:
        """The job of a line."""
        return cls(**json.loads(line))

    # The brokers, as a client wants them

    @property
    def broker_ids(self) -> range:
        return range(len(self.addresses))

    def address(self, broker_id: int) -> str:
        return self.addresses[broker_id]
