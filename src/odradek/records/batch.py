"""The 61-byte header of a record batch (magic 2): read it, check its CRC, stamp it in place.

    position size field                    in the CRC
           0    8 base offset              no
           8    4 batch length             no   bytes that follow this field
          12    4 partition leader epoch   no
          16    1 magic                    no   2; at the same place in the older formats
          17    4 CRC-32C                       of everything from the attributes to the end
          21    2 attributes               yes  bits 0-2 codec, 3 log append time, 4 transactional,
                                                5 control, 6 base timestamp is a delete horizon
          23    4 last offset delta        yes
          27    8 base timestamp, ms       yes
          35    8 max timestamp, ms        yes
          43    8 producer id              yes  -1: none
          51    2 producer epoch           yes  -1: none
          53    4 base sequence            yes  -1: none
          57    4 record count             yes
          61    … records                  yes  compressed as one block if there is a codec

All integers are big-endian. The first 17 bytes lie outside the CRC on purpose: a broker stamps offset and
leader epoch without touching the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from odradek.records.compression import Codec
from odradek.records.crc import crc32c
from odradek.records.errors import CorruptBatch, TruncatedBatch, UnsupportedCodec, UnsupportedMagic
from odradek.records.kernels import layout

Buffer = bytes | bytearray | memoryview

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = layout.HEADER_SIZE
LOG_OVERHEAD = layout.LOG_OVERHEAD
"""Base offset and batch length: what `batch_length` does not count."""
MAGIC = layout.MAGIC
MAGIC_POSITION = layout.MAGIC_POSITION
CRC_POSITION = layout.CRC_POSITION
ATTRIBUTES_POSITION = layout.ATTRIBUTES_POSITION
"""The CRC covers everything from here on."""
MAX_TIMESTAMP_POSITION = 35

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_PARTITION_LEADER_EPOCH = -1

CODEC_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

_MAX_SEQUENCE = 2**31 - 1
_OFFSET = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_PRODUCER = struct.Struct(">qhi")
PRODUCER_POSITION = 43


class TimestampType(IntEnum):
    """Whose clock a batch's timestamps are from: the producer's or the broker's."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


# Looking a member up is several times faster than making it from its number.
_CODECS = tuple(Codec)
_TIMESTAMP_TYPES = tuple(TimestampType)


class BatchHeader(NamedTuple):
    """The fields of a batch header, in the order of the bytes."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_in_bytes(self) -> int:
        """The whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """The last offset that the batch covers; compaction may have removed the record there."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; after 2**31 - 1 comes 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & _MAX_SEQUENCE

    @property
    def codec(self) -> Codec:
        """How the records are compressed; UnsupportedCodec if the bits mean nothing."""
        number = self.attributes & CODEC_MASK
        if number > Codec.ZSTD:
            raise UnsupportedCodec(f"compression codec {number} is unknown")
        return _CODECS[number]

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether the producer or the broker set the timestamps."""
        return _TIMESTAMP_TYPES[(self.attributes & LOG_APPEND_TIME_FLAG) >> 3]

    @property
    def is_transactional(self) -> bool:
        """Whether the records (or the marker) belong to a transaction."""
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        """Whether this is a marker for the broker and for consumers, not a user's records."""
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether the cleaner has put, in place of the base timestamp, when tombstones may go."""
        return self.attributes & DELETE_HORIZON_FLAG != 0

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer wrote it."""
        return self.producer_id > NO_PRODUCER_ID


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header that begins at `position`; the records need not be in the buffer."""
    available = len(buffer) - position
    if available < HEADER_SIZE:
        if available > MAGIC_POSITION and buffer[position + MAGIC_POSITION] != MAGIC:
            raise UnsupportedMagic(_signed_byte(buffer[position + MAGIC_POSITION]), position)
        raise TruncatedBatch(f"{available} bytes left, a batch header has {HEADER_SIZE}", position)
    header = BatchHeader._make(HEADER.unpack_from(buffer, position))
    if header.magic != MAGIC:
        raise UnsupportedMagic(header.magic, position)
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptBatch(f"batch length {header.batch_length} is less than a header has", position)
    return header


def iterate_headers(
    buffer: Buffer, start: int = 0, end: int | None = None
) -> Iterator[tuple[int, BatchHeader]]:
    """Walk the batches that fill `buffer[start:end]`, as (position, header); raise at the first damage."""
    view = memoryview(buffer)[:end]
    position = start
    while position < len(view):
        header = read_header(view, position)
        following = position + header.size_in_bytes
        if following > len(view):
            raise TruncatedBatch(
                f"{len(view) - position} bytes left of a batch of {header.size_in_bytes}", position
            )
        yield position, header
        position = following


def has_valid_crc(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Whether the bytes still are what the producer sent; the whole batch must be in the buffer."""
    return crc32c(_crc_part(buffer, position, header.size_in_bytes)) == header.crc


def stamp(
    buffer: bytearray | memoryview, position: int, base_offset: int, partition_leader_epoch: int
) -> None:
    """Give the batch its place in the log; the CRC covers neither field."""
    _OFFSET.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + LOG_OVERHEAD, partition_leader_epoch)


def stamp_log_append_time(buffer: bytearray | memoryview, position: int, timestamp_ms: int) -> None:
    """Make `timestamp_ms` the time of every record, and renew the CRC.

    The records keep their deltas: with this flag readers take the max timestamp for all of them.
    """
    header = read_header(buffer, position)
    _ATTRIBUTES.pack_into(buffer, position + ATTRIBUTES_POSITION, header.attributes | LOG_APPEND_TIME_FLAG)
    _OFFSET.pack_into(buffer, position + MAX_TIMESTAMP_POSITION, timestamp_ms)
    renew_crc(buffer, position, header.size_in_bytes)


def stamp_producer(
    buffer: bytearray | memoryview, position: int, producer_id: int, producer_epoch: int, base_sequence: int
) -> None:
    """Set producer id, epoch and base sequence of the batch, and renew the CRC."""
    _PRODUCER.pack_into(buffer, position + PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
    renew_crc(buffer, position, read_header(buffer, position).size_in_bytes)


def renew_crc(buffer: bytearray | memoryview, position: int, size: int) -> None:
    """Write the CRC of a batch of `size` bytes whose other fields are final."""
    _UINT32.pack_into(buffer, position + CRC_POSITION, crc32c(_crc_part(buffer, position, size)))


def _crc_part(buffer: Buffer, position: int, size: int) -> memoryview:
    return memoryview(buffer)[position + ATTRIBUTES_POSITION : position + size]


def _signed_byte(byte: int) -> int:
    return byte - 256 if byte > 127 else byte
