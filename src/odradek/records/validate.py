"""What a broker checks before it appends a batch, and what a log holds true of the batches in it.

From a producer everything must be exact. In a log, compaction has left gaps between offsets, batches with no
record, and delete horizons; there only the structure must hold.
"""

from __future__ import annotations

from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.records.batch import (
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    has_valid_crc,
    read_header,
)
from odradek.records.errors import (
    BatchTooLarge,
    CorruptBatch,
    DecompressedTooLarge,
    InvalidRecord,
    RejectedRecords,
    TruncatedBatch,
    UnsupportedMagic,
)
from odradek.records.kernels.layout import Problem
from odradek.records.kernels.record_check import check_records
from odradek.records.record import PlainRecords, plain_records
from odradek.records.rejections import rejected_records


def validate_for_produce(
    buffer: Buffer,
    position: int = 0,
    *,
    max_message_bytes: int,
    max_decompressed_bytes: int,
    requires_key: bool = False,
    timestamp_range_ms: tuple[int, int] | None = None,
    partition: TopicPartition | None = None,
) -> BatchHeader:
    """Check the batch at `position` as a broker does on produce, in Kafka's order; its header if all is well.

    `timestamp_range_ms`, if given, holds the earliest and latest time of a record that has one. It is for
    topics with create time: a broker with log append time overwrites what came. `partition` is named where
    Kafka's messages name it.
    """
    header = _read_as_broker(buffer, position)
    if header.base_offset != 0:
        raise InvalidRecord(f"a producer's base offset is 0, not {header.base_offset}", position)
    if header.size_in_bytes > max_message_bytes:
        raise BatchTooLarge(header.size_in_bytes, max_message_bytes, position)
    _check_crc(buffer, position, header)
    _check_producers_header(header, position)
    try:
        plain = plain_records(buffer, position, header, max_decompressed_bytes)
        least_ms, greatest_ms = _check_structure(plain, header, is_strict=True)
    except CorruptBatch as error:
        # The CRC was right, so this is what the producer made: to send it again, as clients do on
        # CORRUPT_MESSAGE, is in vain. On MESSAGE_TOO_LARGE they split the batch.
        is_bomb = isinstance(error, DecompressedTooLarge)
        error.error_code = ErrorCode.MESSAGE_TOO_LARGE if is_bomb else ErrorCode.INVALID_RECORD
        raise
    is_keyless = requires_key and _lacks_key(plain, header)
    is_untimely = (
        timestamp_range_ms is not None
        and least_ms != NO_TIMESTAMP
        and (least_ms < timestamp_range_ms[0] or greatest_ms > timestamp_range_ms[1])
    )
    if is_keyless or is_untimely:
        raise RejectedRecords(
            rejected_records(
                plain,
                header,
                requires_key=requires_key,
                timestamp_range_ms=timestamp_range_ms,
                partition=partition,
            )
        )
    return header


def validate_for_log(buffer: Buffer, position: int = 0, *, max_decompressed_bytes: int) -> BatchHeader:
    """Check a batch that is, or will be copied, in a log: header, CRC, and the structure of every record."""
    header = _read_whole(buffer, position)
    _check_crc(buffer, position, header)
    if header.base_offset < 0 or header.last_offset_delta < 0:
        raise CorruptBatch(f"offsets {header.base_offset} to {header.last_offset}", position)
    if not 0 <= header.record_count <= header.last_offset_delta + 1:
        raise CorruptBatch(
            f"{header.record_count} records in offsets {header.base_offset} to {header.last_offset}", position
        )
    plain = plain_records(buffer, position, header, max_decompressed_bytes)
    _check_structure(plain, header, is_strict=False)
    return header


def _read_as_broker(buffer: Buffer, position: int) -> BatchHeader:
    """Read the header, and number what is wrong as Kafka does on produce, where a client sees the number.

    What ends too early is no batch there, so that the request has none: INVALID_RECORD. On CORRUPT_MESSAGE,
    which reading a log raises, clients would send it again.
    """
    try:
        return _read_whole(buffer, position)
    except TruncatedBatch as error:
        raise TruncatedBatch(error.problem, position, error_code=ErrorCode.INVALID_RECORD) from None
    except UnsupportedMagic as error:
        is_old = error.magic in (0, 1)
        error_code = ErrorCode.INVALID_RECORD if is_old else ErrorCode.CORRUPT_MESSAGE
        raise UnsupportedMagic(error.magic, position, error_code=error_code) from None


def _read_whole(buffer: Buffer, position: int) -> BatchHeader:
    header = read_header(buffer, position)
    if position + header.size_in_bytes > len(buffer):
        raise TruncatedBatch(
            f"{len(buffer) - position} bytes left of a batch of {header.size_in_bytes}", position
        )
    return header


def _check_crc(buffer: Buffer, position: int, header: BatchHeader) -> None:
    if not has_valid_crc(buffer, position, header):
        raise CorruptBatch(f"the batch does not have the CRC {header.crc:#010x} that it claims", position)


def _check_producers_header(header: BatchHeader, position: int) -> None:
    if header.record_count <= 0:
        raise InvalidRecord(f"a producer's batch with {header.record_count} records", position)
    if header.record_count != header.last_offset_delta + 1:
        raise InvalidRecord(
            f"{header.record_count} records with a last offset delta of {header.last_offset_delta}", position
        )
    if header.is_control:
        raise InvalidRecord("only brokers write control records", position)
    if header.has_producer_id and header.base_sequence <= NO_SEQUENCE:
        raise InvalidRecord(
            f"base sequence {header.base_sequence} with producer id {header.producer_id}", position
        )


def _check_structure(plain: PlainRecords, header: BatchHeader, *, is_strict: bool) -> tuple[int, int]:
    """Walk the records in one kernel call; their earliest and latest timestamp, NO_TIMESTAMP without any."""
    problem, fault_position, index, least_delta_ms, greatest_delta_ms = _check(
        plain, header, is_strict=is_strict, requires_key=False
    )
    if problem:
        raise plain.fault(problem, fault_position, index)
    return header.base_timestamp_ms + least_delta_ms, header.base_timestamp_ms + greatest_delta_ms


def _lacks_key(plain: PlainRecords, header: BatchHeader) -> bool:
    """Whether there is a record without a key in a batch whose structure is right."""
    problem, *_ = _check(plain, header, is_strict=True, requires_key=True)
    return problem == Problem.NO_KEY


def _check(
    plain: PlainRecords, header: BatchHeader, *, is_strict: bool, requires_key: bool
) -> tuple[int, int, int, int, int]:
    return check_records(
        plain.buffer,
        plain.start,
        plain.end,
        header.record_count,
        header.last_offset_delta,
        is_strict,
        requires_key,
        NO_TIMESTAMP - header.base_timestamp_ms,
    )
