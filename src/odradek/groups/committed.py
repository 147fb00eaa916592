"""A committed offset: the position of a group in one partition, with the consumer's metadata."""

from __future__ import annotations

from typing import NamedTuple

NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1
INVALID_OFFSET = -1
NO_TOPIC_ID = bytes(16)


class OffsetAndMetadata(NamedTuple):
    """The next offset to read; `topic_id` is zero if the commit did not have it."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    topic_id: bytes = NO_TOPIC_ID


NOT_COMMITTED = OffsetAndMetadata(INVALID_OFFSET, NO_LEADER_EPOCH, "", NO_TIMESTAMP)
"""The offset of a partition without a committed offset."""
