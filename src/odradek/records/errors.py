"""The errors of record batches, with what is wrong and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError

SHOWN_RECORD_ERRORS = 3
"""How many records an error message describes; Kafka's number."""


class RecordError(NamedTuple):
    """Why one record was rejected; `batch_index` is its place in the batch (0 is the first)."""

    batch_index: int
    message: str
    error_code: ErrorCode = ErrorCode.INVALID_RECORD

    def __str__(self) -> str:
        return f"RecordError(batchIndex={self.batch_index}, message='{self.message}')"


class RecordsError(KafkaError):
    """A fault in record bytes.

    `problem` says what is wrong; `position` is the byte position in the buffer that the caller gave, or -1
    where there is none (a fault inside compressed bytes is placed at its batch).
    """

    def __init__(self, problem: str, position: int = -1, *, error_code: ErrorCode | None = None) -> None:
        self.problem = problem
        self.position = position
        where = f" at byte {position}" if position >= 0 else ""
        super().__init__(problem + where, error_code=error_code)


class CorruptBatch(RecordsError):
    """The batch is damaged: a wrong CRC, a wrong length, bytes that do not decompress."""

    error_code = ErrorCode.CORRUPT_MESSAGE


class TruncatedBatch(CorruptBatch):
    """The buffer ends inside a batch that begins at `position`."""


class DecompressedTooLarge(CorruptBatch):
    """The batch would decompress to more than `limit` bytes; decompression stopped at the limit."""

    def __init__(self, limit: int, position: int = -1) -> None:
        self.limit = limit
        super().__init__(f"records decompress to more than {limit} bytes", position)


class UnsupportedMagic(RecordsError):
    """A message format other than 2: 0 and 1 are Kafka's before 0.11, anything else is unknown.

    On produce Kafka returns INVALID_RECORD or CORRUPT_MESSAGE instead; validate.py does that.
    """

    error_code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT

    def __init__(self, magic: int, position: int = -1, *, error_code: ErrorCode | None = None) -> None:
        self.magic = magic
        known = "the old message format" if magic in (0, 1) else "an unknown format"
        super().__init__(f"magic {magic} is {known}; only magic 2 is read", position, error_code=error_code)


class InvalidRecord(RecordsError):
    """A record breaks the rules; `batch_index` is its place in the batch (0 is the first), or -1.

    `record_errors` are for the response to the producer: one for each record that is to be named.
    """

    error_code = ErrorCode.INVALID_RECORD

    def __init__(
        self, problem: str, position: int = -1, *, batch_index: int = -1, error_code: ErrorCode | None = None
    ) -> None:
        self.batch_index = batch_index
        which = f"record {batch_index} of the batch: " if batch_index >= 0 else ""
        super().__init__(which + problem, position, error_code=error_code)
        self.record_errors: tuple[RecordError, ...] = ()
        if batch_index >= 0:
            self.record_errors = (RecordError(batch_index, str(self), self.error_code),)


class RejectedRecords(InvalidRecord):
    """Records that are whole, but not what the topic accepts; the messages are Kafka's."""

    def __init__(self, record_errors: Sequence[RecordError]) -> None:
        is_untimely = any(one.error_code is ErrorCode.INVALID_TIMESTAMP for one in record_errors)
        if is_untimely:
            problem = "One or more records have been rejected due to invalid timestamp"
        else:
            shown = ", ".join(map(str, record_errors[:SHOWN_RECORD_ERRORS]))
            problem = (
                f"One or more records have been rejected due to {len(record_errors)} record errors in total, "
                f"and only showing the first three errors at most: [{shown}]"
            )
        error_code = ErrorCode.INVALID_TIMESTAMP if is_untimely else ErrorCode.INVALID_RECORD
        super().__init__(problem, error_code=error_code)
        self.batch_index = record_errors[0].batch_index
        self.record_errors = tuple(record_errors)


class UnsupportedCodec(RecordsError):
    """The attributes name an undefined compression codec (5-7)."""

    error_code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class BatchTooLarge(RecordsError):
    """The batch has more bytes than `max.message.bytes`, or than a batch can count."""

    error_code = ErrorCode.MESSAGE_TOO_LARGE

    def __init__(self, size_in_bytes: int, limit: int, position: int = -1) -> None:
        self.size_in_bytes = size_in_bytes
        self.limit = limit
        super().__init__(f"a batch of {size_in_bytes} bytes is larger than {limit}", position)
