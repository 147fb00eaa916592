# cython: annotation_typing=False
"""An ordinary fetch request and its answer, bytes to bytes, without an object for each struct between them.

Compiled by Cython (fetch_frames.pxd has the C types), or interpreted as is. `read_fetch` leaves what a
consumer sends seldom, and everything that is wrong, to the schema's own decoder. Lengths and counts are
compact from version 12 on; before, a string has an int16 and an array an int32 in front.

    int16 api key 1, int16 version 11-18, int32 correlation id, string client id, [12-18] no tagged fields
    [11-14] int32 replica id -1
    int32 max wait, int32 min bytes, int32 max bytes, int8 isolation level, int32 session id, int32 epoch
    topics: name, or from version 13 on 16 bytes id
        partitions: int32 index, int32 leader epoch, int64 offset, [12-18] int32 last fetched epoch,
                    int64 log start offset, int32 max bytes, [12-18] no tagged fields
        [12-18] no tagged fields
    forgotten topics: name or id
        partitions: int32 index
        [12-18] no tagged fields
    rack id, [12-18] no tagged fields

    int32 size, int32 correlation id, [12-18] no tagged fields
    int32 throttle time, int16 error 0, int32 session id
    topics: name or id
        partitions: int32 index, int16 error 0, int64 high watermark, int64 last stable offset,
                    int64 log start offset, aborted transactions (none, or null for read_uncommitted),
                    int32 preferred replica -1, records with their length, [12-18] no tagged fields
        [12-18] no tagged fields
    [12-18] no tagged fields
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

try:
    import cython
except ImportError:
    from odradek.common import cython_shim as cython

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import (
        copied,
        int16_at,
        int32_at,
        int64_at,
        octets_of,
        put_int32,
        put_int64,
    )
else:
    from odradek.common.byte_access import (
        copied,
        int16_at,
        int32_at,
        int64_at,
        octets_of,
        put_int32,
        put_int64,
    )

FIRST_VERSION, LAST_VERSION = 11, 18
_FIRST_VERSION, _LAST_VERSION = FIRST_VERSION, LAST_VERSION
TOPIC_IDS_FROM = 13
_FLEXIBLE_FROM, _TOPIC_IDS_FROM = 12, TOPIC_IDS_FROM
_LAST_WITH_REPLICA_ID = 14
_SHORTEST = 36  # with nothing in it; more than any number has
MAX_PARTITIONS = 1000
_MAX_PARTITIONS = MAX_PARTITIONS
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_READ_COMMITTED = READ_COMMITTED

# Bytes of the answer: size, correlation id, throttle time, error and session; a partition without lengths and
# records. Where the version has tagged fields, a 0 follows the correlation id, and each struct.
_START_BYTES, _ROW_BYTES = 18, 34
_TOPIC_ID_BYTES = 16
_COPIED_BYTES = 4096
_NULL, _NO_REPLICA = -1, -1


class WantedRecords:
    """What is asked of one partition; named as in the schema."""

    def __init__(
        self,
        partition: int,
        current_leader_epoch: int,
        fetch_offset: int,
        last_fetched_epoch: int,
        partition_max_bytes: int,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.partition_max_bytes = partition_max_bytes


class WantedTopic:
    """A topic by its name, or by its id in versions that have ids, and what is asked of its partitions."""

    def __init__(self, topic: str | bytes, partitions: list[WantedRecords]) -> None:
        self.topic = topic
        self.partitions = partitions


class FetchFrame:
    """An ordinary request; `forgotten` are pairs of a topic and a partition."""

    def __init__(
        self,
        version: int,
        correlation_id: int,
        client_id: str | None,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        isolation_level: int,
        session_id: int,
        session_epoch: int,
    ) -> None:
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics: list[WantedTopic] = []
        self.forgotten: list[tuple[str | bytes, int]] = []


class FoundRecords:
    """What is told of one partition; `records` are bytes, or a part of a file."""

    def __init__(
        self,
        partition: int,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        records: Sized,
    ) -> None:
        self.partition = partition
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records = records


class FrameReader:
    """Reads a frame from front to back. What is cut off or unusual makes it bad, for good.

    Then lengths are 0 and numbers any that the frame begins with; so it must be longer than a number.
    """

    def __init__(self, frame: memoryview) -> None:
        self.frame = frame
        self.octets = octets_of(frame)
        self.position = 0
        self.end = len(frame)
        self.is_flexible = False
        self.is_bad = False

    def take(self, size: int) -> int:
        """Where the next `size` bytes begin; they have been read then."""
        start = self.position
        if size < 0 or self.is_bad or size > self.end - start:
            self.is_bad = True
            return 0
        self.position = start + size
        return start

    def int32(self) -> int:
        """A signed number of four bytes."""
        number: int = int32_at(self.octets, self.take(4))
        return number

    def varint(self) -> int:
        """A number below 2**28, as flexible versions write lengths."""
        found = 0
        for shift in range(0, 28, 7):
            octet: int = self.octets[self.take(1)]
            found |= (octet & 0x7F) << shift
            if octet < 0x80:
                return found
        self.is_bad = True
        return 0

    def length(self, size: int) -> int:
        """Of a string or array, which has `size` bytes for it unless it is compact; null is bad."""
        if self.is_flexible:
            found = self.varint() - 1
        else:
            found = self.int32() if size == 4 else int16_at(self.octets, self.take(2))
        if found < 0 or self.is_bad:
            self.is_bad = True
            return 0
        return found

    def pass_tags(self) -> None:
        """There is nothing among the tagged fields, where the version has them."""
        if self.is_flexible and self.octets[self.take(1)] != 0:
            self.is_bad = True

    def ascii(self, length: int) -> str:
        """Text that no decoder would refuse."""
        start = self.take(length)
        if self.is_bad:
            return ""
        for at in range(start, start + length):
            if self.octets[at] >= 0x80:
                self.is_bad = True
                return ""
        text: str = copied(self.octets, start, start + length).decode("ascii")
        return text

    def copy(self, length: int) -> bytes:
        """The next bytes themselves."""
        start = self.take(length)
        return b"" if self.is_bad else copied(self.octets, start, start + length)


def read_fetch(frame: memoryview) -> FetchFrame | None:
    """The request in a frame (without its size) if it is an ordinary one."""
    if len(frame) < _SHORTEST:
        return None
    reader = FrameReader(frame)
    api_key = int16_at(reader.octets, reader.take(2))
    version = int16_at(reader.octets, reader.take(2))
    if api_key != 1 or version < _FIRST_VERSION or version > _LAST_VERSION:
        return None
    correlation_id = reader.int32()
    client_id_length = int16_at(reader.octets, reader.take(2))
    client_id = None if client_id_length == _NULL else reader.ascii(client_id_length)
    reader.is_flexible = version >= _FLEXIBLE_FROM
    reader.pass_tags()
    if version <= _LAST_WITH_REPLICA_ID and reader.int32() != _NO_REPLICA:
        return None
    max_wait_ms, min_bytes, max_bytes = reader.int32(), reader.int32(), reader.int32()
    isolation_level = reader.octets[reader.take(1)]
    session_id, session_epoch = reader.int32(), reader.int32()
    if isolation_level > _READ_COMMITTED:
        return None
    request = FetchFrame(
        version,
        correlation_id,
        client_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
    )
    _read_topics(reader, request)
    _read_forgotten(reader, request)
    reader.ascii(reader.length(2))  # the rack
    reader.pass_tags()
    return None if reader.is_bad else request


def _read_topics(reader: FrameReader, request: FetchFrame) -> None:
    room = _MAX_PARTITIONS
    for _ in range(reader.length(4)):
        topic = _read_topic(reader, request.version)
        partition_count = reader.length(4)
        room -= partition_count
        if reader.is_bad or room < 0:
            reader.is_bad = True
            return
        partitions = [_read_partition(reader) for _ in range(partition_count)]
        reader.pass_tags()
        request.topics.append(WantedTopic(topic, partitions))


def _read_forgotten(reader: FrameReader, request: FetchFrame) -> None:
    room = _MAX_PARTITIONS
    for _ in range(reader.length(4)):
        topic = _read_topic(reader, request.version)
        partition_count = reader.length(4)
        room -= partition_count
        if reader.is_bad or room < 0:
            reader.is_bad = True
            return
        for _ in range(partition_count):
            request.forgotten.append((topic, reader.int32()))
        reader.pass_tags()


def _read_topic(reader: FrameReader, version: int) -> Any:
    if version >= _TOPIC_IDS_FROM:
        return reader.copy(_TOPIC_ID_BYTES)
    name = _text(reader.copy(reader.length(2)))
    if name is None:
        reader.is_bad = True
    return name


def _read_partition(reader: FrameReader) -> WantedRecords:
    index, leader_epoch = reader.int32(), reader.int32()
    offset = int64_at(reader.octets, reader.take(8))
    last_fetched_epoch = reader.int32() if reader.is_flexible else -1
    reader.take(8)  # the log start offset, which only followers have
    max_bytes = reader.int32()
    reader.pass_tags()
    return WantedRecords(index, leader_epoch, offset, last_fetched_epoch, max_bytes)


def _text(name: bytes) -> str | None:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None


def answer_fetch(request: FetchFrame, session_id: int, told: dict[Any, list[FoundRecords]]) -> list[Any]:
    """The parts of the answer when nothing went wrong; each topic as the request speaks of it.

    Parts of files stand between parts of one array; if there are none, the array is all.
    """
    is_flexible = request.version >= _FLEXIBLE_FROM
    names = [_topic_bytes(topic, is_flexible) for topic in told]
    # What is not written below is 0: no throttling, no error, no tagged fields.
    answer = bytearray(_size_around_files(is_flexible, names, told))
    octets = answer
    parts: list[Any] = []
    start = 0
    put_int32(octets, 0, len(answer) + _size_of_files(told) - 4)
    put_int32(octets, 4, request.correlation_id)
    position = _START_BYTES + is_flexible
    put_int32(octets, position - 4, session_id)
    position = _put_length(octets, position, len(names), is_flexible)
    for name, rows in zip(names, told.values(), strict=True):
        answer[position : position + len(name)] = name
        position = _put_length(octets, position + len(name), len(rows), is_flexible)
        for row in rows:
            position = _put_row(octets, position, row, request.isolation_level, is_flexible)
            records = row.records
            record_bytes = len(records)
            if isinstance(records, bytes):
                answer[position : position + record_bytes] = records
                position += record_bytes
            else:
                parts.append(_around(answer, octets, start, position))
                parts.append(records)
                start = position
            position += is_flexible
        position += is_flexible
    if not parts:
        return [answer]
    if start < len(answer):
        parts.append(_around(answer, octets, start, len(answer)))
    return parts


def _around(answer: bytearray, octets: bytearray, start: int, end: int) -> bytes | memoryview:
    """What stands between two files: a copy is cheaper to send than a view, while it is short."""
    return copied(octets, start, end) if end - start <= _COPIED_BYTES else memoryview(answer)[start:end]


def _size_around_files(is_flexible: bool, names: list[bytes], told: dict[Any, list[FoundRecords]]) -> int:
    """Bytes of an answer without the parts of files in it."""
    size = _START_BYTES + 2 * is_flexible + _length_size(len(names), is_flexible)
    for name in names:
        size += len(name) + is_flexible
    for rows in told.values():
        size += _length_size(len(rows), is_flexible)
        for row in rows:
            record_bytes = len(row.records)
            size += _ROW_BYTES + _length_size(0, is_flexible) + _length_size(record_bytes, is_flexible)
            size += is_flexible
            if isinstance(row.records, bytes):
                size += record_bytes
    return size


def _size_of_files(told: dict[Any, list[FoundRecords]]) -> int:
    """Bytes of an answer that lie in files."""
    size = 0
    for rows in told.values():
        for row in rows:
            if not isinstance(row.records, bytes):
                size += len(row.records)
    return size


def _put_row(
    octets: bytearray, position: int, row: FoundRecords, isolation_level: int, is_flexible: bool
) -> int:
    """All of a partition up to its records; the position after it."""
    put_int32(octets, position, row.partition)
    put_int64(octets, position + 6, row.high_watermark)
    put_int64(octets, position + 14, row.last_stable_offset)
    put_int64(octets, position + 22, row.log_start_offset)
    # No aborted transactions, or, for who reads uncommitted, no such list.
    aborted_count = 0 if isolation_level == _READ_COMMITTED else _NULL
    position = _put_length(octets, position + 30, aborted_count, is_flexible)
    put_int32(octets, position, _NO_REPLICA)
    return _put_length(octets, position + 4, len(row.records), is_flexible)


def _topic_bytes(topic: Any, is_flexible: bool) -> bytes:
    if isinstance(topic, bytes):
        return topic
    name: bytes = topic.encode()
    if not is_flexible:
        return len(name).to_bytes(2, "big") + name
    length = bytearray(_length_size(len(name), is_flexible))
    _put_length(length, 0, len(name), is_flexible)
    return bytes(length) + name


def _length_size(number: int, is_flexible: bool) -> int:
    """Bytes that `_put_length` needs."""
    if not is_flexible:
        return 4
    size = 1
    number += 1
    while number >= 0x80:
        number >>= 7
        size += 1
    return size


def _put_length(octets: bytearray, position: int, number: int, is_flexible: bool) -> int:
    """Write the length of an array or of records, `_NULL` for none; the position after it."""
    if not is_flexible:
        put_int32(octets, position, number)
        return position + 4
    number += 1
    while number >= 0x80:
        octets[position] = number & 0x7F | 0x80
        position += 1
        number >>= 7
    octets[position] = number
    return position + 1
