"""Where a consumer is in each partition. No I/O, no clock.

`position` belongs to the polling thread: the offset after the last record returned. `fetch_offset` belongs to
the fetcher, which is ahead of it. A seek increments `generation`, so that data fetched for another position
is dropped. Each of the two has the leader epoch of the record before it, to detect truncation
(truncation.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.common.ids import TopicPartition

EARLIEST = -2
LATEST = -1
NO_EPOCH = -1
MOST_BUFFERED = 2
"""Responses of a partition that are buffered at most."""


@dataclass(slots=True, eq=False)
class PartitionPosition:
    """One assigned partition."""

    topic: str
    partition: int
    position: int | None = None
    fetch_offset: int | None = None
    leader_epoch: int = NO_EPOCH
    """Of the last record returned, to be committed with the offset."""
    fetch_epoch: int = NO_EPOCH
    """Of the last record fetched."""
    validated_epoch: int | None = None
    """The epoch of the leader that is known to have everything before `fetch_offset`."""
    generation: int = 0
    is_paused: bool = False
    is_leaving: bool = False
    """Whether it is being revoked: no more offsets are committed for it."""
    is_reset: bool = False
    """Whether the position is to be found by auto_offset_reset, whatever is committed."""
    buffered: int = 0
    """Responses that were fetched and not returned yet."""
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    log_start_offset: int | None = None
    preferred_replica: int | None = None
    not_before_ms: float = 0.0
    """After an error: when it may be fetched again."""
    fetch_end: int | None = None
    """The offset at which fetching ends; a response that was requested before it may go further."""
    topic_partition: TopicPartition = field(init=False)

    def __post_init__(self) -> None:
        self.topic_partition = TopicPartition(self.topic, self.partition)

    def seek(self, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Set the position; `leader_epoch` is that of the record before it."""
        self.generation += 1
        self.position = self.fetch_offset = offset
        self.leader_epoch = self.fetch_epoch = leader_epoch
        self.validated_epoch = None
        self.is_reset = False
        self.buffered = 0

    def lose_position(self) -> None:
        """Clear the position; it must be looked up again."""
        self.generation += 1
        self.position = self.fetch_offset = None
        self.buffered = 0

    @property
    def is_fetched(self) -> bool:
        """Whether everything before `fetch_end` was fetched."""
        return (
            self.fetch_end is not None
            and self.fetch_offset is not None
            and self.fetch_offset >= self.fetch_end
        )

    @property
    def is_held(self) -> bool:
        """Whether no record of it may be returned now."""
        return self.is_paused or self.is_leaving

    @property
    def lag(self) -> int | None:
        """Records between the position and the end of what may be read, as far as known."""
        if self.high_watermark is None or self.position is None:
            return None
        return max(0, self.high_watermark - self.position)
