"""Errors of a consumer other than those reported by brokers."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.client.errors import ClientError
from odradek.common.ids import TopicPartition


class NoOffset(ClientError):
    """There is no committed offset, or it is out of range, and `auto_offset_reset` is none."""

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.partitions = sorted(partitions)
        names = ", ".join(map(str, self.partitions))
        super().__init__(
            f"no offset to begin with in {names}, and auto_offset_reset=none: seek, or commit one"
        )


class LogTruncated(ClientError):
    """Records that were read are not in the log any more: a leader that lacked it was elected (KIP-320).

    `divergent_offset` is where the log differs from what was read, as far as the leader knows.
    """

    def __init__(self, partition: TopicPartition, offset: int, divergent_offset: int | None) -> None:
        self.partition = partition
        self.offset = offset
        self.divergent_offset = divergent_offset
        where = (
            "" if divergent_offset is None else f" and differs from what was read from {divergent_offset} on"
        )
        super().__init__(
            f"the log of {partition} was truncated before offset {offset}{where}; "
            f"auto_offset_reset=none: seek to continue"
        )


class CorruptRecords(ClientError):
    """A batch from a broker is damaged; seek past it to continue."""

    def __init__(self, partition: TopicPartition, offset: int, problem: str) -> None:
        self.partition = partition
        self.offset = offset
        super().__init__(f"the batch at offset {offset} of {partition} is damaged: {problem}")


class DeserializationFailed(ClientError):
    """A deserializer raised, which is the cause; the next `poll` raises again: seek past the record."""

    def __init__(self, partition: TopicPartition, offset: int, problem: BaseException) -> None:
        self.partition = partition
        self.offset = offset
        super().__init__(
            f"the record at offset {offset} of {partition} cannot be deserialized: "
            f"{type(problem).__name__}: {problem}"
        )


class NotSubscribed(ClientError):
    """A call that needs an assignment, without one; or two ways to get one at once."""
