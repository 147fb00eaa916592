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

import struct
from collections.abc import Iterable, Sized
from typing import Any

FIRST_VERSION, LAST_VERSION = 11, 18
_FIRST_VERSION, _LAST_VERSION = FIRST_VERSION, LAST_VERSION
TOPIC_IDS_FROM = 13
_FLEXIBLE_FROM, _TOPIC_IDS_FROM = 12, TOPIC_IDS_FROM
_LAST_WITH_REPLICA_ID = 14
_HEADER_BYTES = 8  # before the client id
MAX_PARTITIONS = 1000
_MAX_PARTITIONS = MAX_PARTITIONS
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_READ_COMMITTED = READ_COMMITTED

_pack_start = struct.Struct(">ii").pack
_pack_answer = struct.Struct(">ihi").pack
_pack_row = struct.Struct(">ihqqq").pack
_pack_int32 = struct.Struct(">i").pack
_pack_int16 = struct.Struct(">h").pack
_NO_TAGS = b"\x00"
_NO_PREFERRED_REPLICA = b"\xff\xff\xff\xff"


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
    """Reads a frame from front to back. What is cut off or unusual makes it bad, for good; then all is 0."""

    def __init__(self, frame: memoryview, position: int, is_flexible: bool) -> None:
        self.frame = frame
        self.octets = frame
        self.position = position
        self.end = len(frame)
        self.is_flexible = is_flexible
        self.is_bad = False

    def take(self, size: int) -> int:
        """Where the next `size` bytes begin; they have been read then."""
        start = self.position
        if size < 0 or self.is_bad or size > self.end - start:
            self.is_bad = True
            return 0
        self.position = start + size
        return start

    def number(self, size: int) -> int:
        """A signed number of so many bytes, big-endian."""
        start = self.take(size)
        if self.is_bad:
            return 0
        found = self.octets[start]
        if found >= 0x80:
            found -= 0x100
        for at in range(start + 1, start + size):
            found = found * 0x100 + self.octets[at]
        return found

    def varint(self) -> int:
        """A number below 2**28, as flexible versions write lengths."""
        found = 0
        for shift in range(0, 28, 7):
            start = self.take(1)
            if self.is_bad:
                return 0
            found |= (self.octets[start] & 0x7F) << shift
            if self.octets[start] < 0x80:
                return found
        self.is_bad = True
        return 0

    def length(self, size: int) -> int:
        """Of a string or array, which has `size` bytes for it unless it is compact; null is bad."""
        found = self.varint() - 1 if self.is_flexible else self.number(size)
        if found < 0:
            self.is_bad = True
            return 0
        return found

    def pass_tags(self) -> None:
        """There is nothing among the tagged fields, where the version has them."""
        if self.is_flexible and self.octets[self.take(1)] != 0:
            self.is_bad = True

    def pass_ascii(self, length: int) -> None:
        """Text that no decoder would refuse."""
        start = self.take(length)
        if not self.is_bad:
            for at in range(start, start + length):
                if self.octets[at] >= 0x80:
                    self.is_bad = True

    def ascii(self, length: int) -> str:
        """Such text itself."""
        start = self.position
        self.pass_ascii(length)
        return "" if self.is_bad else bytes(self.frame[start : self.position]).decode()

    def copy(self, length: int) -> bytes:
        """The next bytes themselves."""
        start = self.take(length)
        return b"" if self.is_bad else bytes(self.frame[start : start + length])


def read_fetch(frame: memoryview) -> FetchFrame | None:
    """The request in a frame (without its size) if it is an ordinary one."""
    reader = FrameReader(frame, 0, False)
    api_key = reader.number(2)
    version = reader.number(2)
    if api_key != 1 or version < _FIRST_VERSION or version > _LAST_VERSION:
        return None
    correlation_id = reader.number(4)
    client_id_length = reader.number(2)
    client_id = None if client_id_length == -1 else reader.ascii(client_id_length)
    reader.is_flexible = version >= _FLEXIBLE_FROM
    reader.pass_tags()
    if version <= _LAST_WITH_REPLICA_ID and reader.number(4) != -1:
        return None
    request = FetchFrame(
        version,
        correlation_id,
        client_id,
        reader.number(4),
        reader.number(4),
        reader.number(4),
        reader.number(1),
        reader.number(4),
        reader.number(4),
    )
    _read_topics(reader, request)
    _read_forgotten(reader, request)
    reader.pass_ascii(reader.length(2))
    reader.pass_tags()
    if reader.is_bad or not 0 <= request.isolation_level <= _READ_COMMITTED:
        return None
    return request


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
            request.forgotten.append((topic, reader.number(4)))
        reader.pass_tags()


def _read_topic(reader: FrameReader, version: int) -> Any:
    if version >= _TOPIC_IDS_FROM:
        return reader.copy(16)
    name = _text(reader.copy(reader.length(2)))
    if name is None:
        reader.is_bad = True
    return name


def _read_partition(reader: FrameReader) -> WantedRecords:
    index = reader.number(4)
    leader_epoch = reader.number(4)
    offset = reader.number(8)
    last_fetched_epoch = reader.number(4) if reader.is_flexible else -1
    reader.take(8)  # the log start offset, which only followers have
    max_bytes = reader.number(4)
    reader.pass_tags()
    return WantedRecords(index, leader_epoch, offset, last_fetched_epoch, max_bytes)


def _text(name: bytes) -> str | None:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None


def answer_fetch(
    request: FetchFrame, session_id: int, topics: Iterable[tuple[Any, list[FoundRecords]]]
) -> list[Any]:
    """The parts of the answer when nothing went wrong; each topic as the request speaks of it."""
    is_flexible = request.version >= _FLEXIBLE_FROM
    tags = _NO_TAGS if is_flexible else b""
    aborted = _length(0, is_flexible, 4)
    if request.isolation_level != _READ_COMMITTED:
        aborted = b"\x00" if is_flexible else b"\xff\xff\xff\xff"
    topics = list(topics)
    before_records = aborted + _NO_PREFERRED_REPLICA
    between: list[bytes] = [b"", tags, _pack_answer(0, 0, session_id), _length(len(topics), is_flexible, 4)]
    parts: list[Any] = []
    size = 4  # of the correlation id
    for topic, rows in topics:
        between.append(_topic_bytes(topic, is_flexible))
        between.append(_length(len(rows), is_flexible, 4))
        for row in rows:
            between.append(
                _pack_row(row.partition, 0, row.high_watermark, row.last_stable_offset, row.log_start_offset)
            )
            record_bytes = len(row.records)
            between.append(before_records)
            between.append(_length(record_bytes, is_flexible, 4))
            if record_bytes:
                parts.append(b"".join(between))
                parts.append(row.records)
                between = [tags]
                size += record_bytes
            else:
                between.append(tags)
        between.append(tags)
    between.append(tags)
    parts.append(b"".join(between))
    for index in range(0, len(parts), 2):
        size += len(parts[index])
    parts[0] = _pack_start(size, request.correlation_id) + parts[0]
    return parts if parts[len(parts) - 1] else parts[: len(parts) - 1]


def _topic_bytes(topic: Any, is_flexible: bool) -> bytes:
    if isinstance(topic, bytes):
        return topic
    name: bytes = topic.encode()
    return _length(len(name), is_flexible, 2) + name


def _length(number: int, is_flexible: bool, size: int) -> bytes:
    """Of a string, an array or records, in `size` bytes unless it is compact."""
    if not is_flexible:
        return _pack_int32(number) if size == 4 else _pack_int16(number)
    number += 1
    found = b""
    while number >= 0x80:
        found += bytes((number & 0x7F | 0x80,))
        number >>= 7
    return found + bytes((number,))
