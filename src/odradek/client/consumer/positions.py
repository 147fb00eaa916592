"""Where a consumer is in each partition. No I/O, no clock.

`position` belongs to whoever polls: the offset after the last record handed out. `fetch_offset` belongs to
the fetcher, which runs ahead of it. A seek raises `generation`, so that what was fetched for another place
is dropped. Beside each of the two is the leader epoch of the record before it: by that a new leader can tell
whether its log is the one that was read (truncation.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.common.ids import TopicPartition

EARLIEST = -2
LATEST = -1
NO_EPOCH = -1
MOST_BUFFERED = 2
"""Answers of a partition that may wait to be handed out: while there are so many, no more are fetched."""


@dataclass(slots=True, eq=False)
class PartitionPosition:
    """One assigned partition."""

    topic: str
    partition: int
    position: int | None = None
    fetch_offset: int | None = None
    leader_epoch: int = NO_EPOCH
    """Of the last record handed out, to be committed with the offset."""
    fetch_epoch: int = NO_EPOCH
    """Of the last record fetched."""
    validated_epoch: int | None = None
    """The epoch of the leader that is known to have everything before `fetch_offset`."""
    generation: int = 0
    is_paused: bool = False
    is_leaving: bool = False
    """Whether it goes to another member: what was committed for it must stay the last word."""
    is_reset: bool = False
    """Whether the position is to be found by auto_offset_reset, whatever is committed."""
    buffered: int = 0
    """Answers that were fetched and are not handed out yet."""
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    log_start_offset: int | None = None
    preferred_replica: int | None = None
    not_before_ms: float = 0.0
    """After an error: when it may be fetched again."""
    topic_partition: TopicPartition = field(init=False)

    def __post_init__(self) -> None:
        self.topic_partition = TopicPartition(self.topic, self.partition)

    def seek(self, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Go on from here, where the record before was written by a leader of this epoch."""
        self.generation += 1
        self.position = self.fetch_offset = offset
        self.leader_epoch = self.fetch_epoch = leader_epoch
        self.validated_epoch = None
        self.is_reset = False
        self.buffered = 0

    def lose_position(self) -> None:
        """The position must be found out again."""
        self.generation += 1
        self.position = self.fetch_offset = None
        self.buffered = 0

    @property
    def is_held(self) -> bool:
        """Whether no record of it may be handed out now."""
        return self.is_paused or self.is_leaving

    @property
    def lag(self) -> int | None:
        """Records between the position and the end of what may be read, as far as known."""
        if self.high_watermark is None or self.position is None:
            return None
        return max(0, self.high_watermark - self.position)
