"""The errors of a log, with their details."""

from __future__ import annotations

import contextlib
import errno as os_errors
from collections.abc import Iterator

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError, OdradekError
from odradek.common.ids import TopicPartition
from odradek.log.files.file_system import NO_SPACE_ERRORS


class LogError(KafkaError):
    """The base class of errors that a log raises."""


class OffsetOutOfRange(LogError):
    """A read outside of what the log holds."""

    error_code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        super().__init__(f"offset {offset} is not in [{log_start_offset}, {log_end_offset}]")


class RecordListTooLarge(LogError):
    """One append has more bytes than a segment may have."""

    error_code = ErrorCode.RECORD_LIST_TOO_LARGE

    def __init__(self, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(f"{size} bytes in one append, more than a segment's {limit}")


class UnexpectedAppendOffset(LogError):
    """A follower got batches that do not continue its log; the first one covers `offset` to `last_offset`."""

    def __init__(self, offset: int, expected: int, last_offset: int) -> None:
        self.offset = offset
        self.expected = expected
        self.last_offset = last_offset
        super().__init__(f"offset {offset} where {expected} or more was expected")


class OutOfOrderSequence(LogError):
    """A producer's batch does not continue its sequence here."""

    error_code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def __init__(self, producer_id: int, sequence: int, last_sequence: int) -> None:
        self.producer_id = producer_id
        self.sequence = sequence
        self.last_sequence = last_sequence
        super().__init__(f"producer {producer_id}: sequence {sequence} after {last_sequence}")


class InvalidProducerEpoch(LogError):
    """A producer with an older epoch still writes."""

    error_code = ErrorCode.INVALID_PRODUCER_EPOCH

    def __init__(self, producer_id: int, producer_epoch: int, current_epoch: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.current_epoch = current_epoch
        super().__init__(f"producer {producer_id}: epoch {producer_epoch} is fenced by {current_epoch}")


class CoordinatorFenced(LogError):
    """A transaction coordinator with an older epoch still writes markers."""

    error_code = ErrorCode.TRANSACTION_COORDINATOR_FENCED

    def __init__(self, producer_id: int, coordinator_epoch: int, current_epoch: int) -> None:
        self.producer_id = producer_id
        self.coordinator_epoch = coordinator_epoch
        self.current_epoch = current_epoch
        super().__init__(
            f"producer {producer_id}: coordinator epoch {coordinator_epoch} is fenced by {current_epoch}"
        )


class InvalidTxnState(LogError):
    """A non-transactional write of a producer with an open transaction."""

    error_code = ErrorCode.INVALID_TXN_STATE

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        super().__init__(f"producer {producer_id} has a transaction open and must write transactionally")


class StorageError(LogError):
    """A disk error. `is_no_space`: the disk is full, the log stays online; else the directory has failed."""

    error_code = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, error: OSError, path: str) -> None:
        self.errno = error.errno
        self.path = path
        name = os_errors.errorcode.get(error.errno or 0, "?")
        super().__init__(f"{path}: {name}: {error.strerror or error}")

    @property
    def is_no_space(self) -> bool:
        """Whether the disk is full."""
        return self.errno in NO_SPACE_ERRORS


@contextlib.contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """Convert an OSError in the block to a StorageError of that directory."""
    try:
        yield
    except OSError as error:
        raise StorageError(error, path) from error


class LogCorrupted(LogError):
    """Committed records are damaged or missing: the log must not be served or truncated automatically.

    `valid_end_offset` is the end of the intact prefix, which is below `expected_end_offset`.
    """

    error_code = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(
        self,
        partition: TopicPartition,
        path: str,
        problem: str,
        *,
        position: int,
        valid_end_offset: int,
        expected_end_offset: int,
    ) -> None:
        self.partition = partition
        self.path = path
        self.problem = problem
        self.position = position
        self.valid_end_offset = valid_end_offset
        self.expected_end_offset = expected_end_offset
        super().__init__(
            f"{path}: {problem} (byte {position}); the log is intact up to offset {valid_end_offset}, "
            f"but {expected_end_offset} was reached before"
        )


class DamagedPartitionMetadata(LogCorrupted):
    """`partition.metadata` cannot be read: a log of unknown topic id must not be served by its name."""

    def __init__(self, partition: TopicPartition, path: str, problem: str) -> None:
        super().__init__(partition, path, problem, position=0, valid_end_offset=0, expected_end_offset=0)
        self.args = (
            f"{path}: partition.metadata is damaged ({problem}), so the topic of the log is unknown. "
            "If it is the present topic of that name, stop the broker and delete the file; it is written "
            "again at the next start",
        )


class DamagedIndex(OdradekError):
    """An index contradicts itself or its log; it can be rebuilt, so callers never see this."""


class DirectoryLocked(OdradekError):
    """Another process uses the log directory."""


class InconsistentMetaProperties(OdradekError):
    """The log directory belongs to another broker or another cluster."""
