# cython: annotation_typing=False
"""An ordinary produce request and its answer, bytes to bytes, without an object for each struct between them.

Compiled by Cython (produce_frames.pxd has the C types), or interpreted as is. Nearly every request that a
busy broker gets is one of these; `read_produce` leaves all others, and everything that is wrong, to the
schema's own decoder.

    int16 api key 0, int16 version 9-13, int32 correlation id, string client id, no tagged fields
    no transactional id, int16 acks 1 or -1, int32 time-out
    topics, compact: name, compact (up to version 12) or 16 bytes id
        partitions, compact: int32 index, batch without transaction as compact bytes, no tagged fields
        no tagged fields
    no tagged fields

    int32 size, int32 correlation id, no tagged fields
    topics, compact: name or id as it came
        partitions, compact:
            int32 index, int16 error 0, int64 base offset, int64 append time, int64 log start offset
            no record errors, no error message, no tagged fields
        no tagged fields
    int32 throttle time, no tagged fields
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

FIRST_VERSION, LAST_VERSION = 9, 13
_FIRST_VERSION, _LAST_VERSION = FIRST_VERSION, LAST_VERSION
TOPIC_IDS_FROM = 13
_TOPIC_IDS_FROM = TOPIC_IDS_FROM
_CLIENT_ID_POSITION = 8
_SHORTEST = 20  # without client id and topics
_TOPIC_ID_BYTES = 16
# Of a batch: where the low byte of its attributes is, and the bit that says it belongs to a transaction.
_ATTRIBUTES_POSITION = 22
_TRANSACTIONAL_FLAG = 0x10
_BAD = -1

_pack_start = struct.Struct(">iib").pack
_pack_row = struct.Struct(">ihqqq").pack
_AFTER_ROW = b"\x01\x00\x00"  # no record errors, no message, no tagged fields
_AFTER_TOPIC = b"\x00"
_END = b"\x00\x00\x00\x00\x00"  # no throttling, no tagged fields


class TopicBatches:
    """The batches for one topic: its name, or its id in versions that have ids, and (index, batch) for each.

    `echo` is name or id, and the number of partitions, as the answer repeats them.
    """

    def __init__(self, topic: str | bytes, echo: bytes, batches: list[tuple[int, memoryview]]) -> None:
        self.topic = topic
        self.echo = echo
        self.batches = batches


class ProduceFrame:
    """An ordinary request; `topic_count` is the bytes that the answer repeats."""

    def __init__(
        self, version: int, correlation_id: int, acks: int, topic_count: bytes, topics: list[TopicBatches]
    ) -> None:
        self.version = version
        self.correlation_id = correlation_id
        self.acks = acks
        self.topic_count = topic_count
        self.topics = topics


def read_produce(frame: memoryview) -> ProduceFrame | None:
    """The request in a frame (without its size) if it is an ordinary one; batches are views of the frame."""
    octets = frame
    end = len(octets)
    if end < _SHORTEST or _int16(octets, 0) != 0:
        return None
    version = _int16(octets, 2)
    if version < _FIRST_VERSION or version > _LAST_VERSION:
        return None
    position = _after_client_id(octets)
    # Tagged fields, transactional id, acks, time-out (an append that waits for nobody has none), topics.
    if position < 0 or position + 9 > end or octets[position] != 0 or octets[position + 1] != 0:
        return None
    acks = _int16(octets, position + 2)
    if acks not in (1, -1):
        return None
    position += 8
    start = position
    topic_count = _compact_length(octets, position, end)
    position += _varint_size(octets, position, end)
    if topic_count < 0:
        return None
    topic_count_bytes = bytes(frame[start:position])
    topics: list[TopicBatches] = []
    for _ in range(topic_count):
        start = position
        if version >= _TOPIC_IDS_FROM:
            length = _TOPIC_ID_BYTES
        else:
            length = _compact_length(octets, position, end)
            position += _varint_size(octets, position, end)
        if length < 0 or position + length > end:
            return None
        topic_bytes = bytes(frame[position : position + length])
        position += length
        partition_count = _compact_length(octets, position, end)
        position += _varint_size(octets, position, end)
        echo = bytes(frame[start:position])
        batches: list[tuple[int, memoryview]] = []
        position = _read_batches(frame, octets, position, partition_count, batches)
        if position < 0 or position >= end or octets[position] != 0:
            return None
        position += 1
        if version >= _TOPIC_IDS_FROM:
            topics.append(TopicBatches(topic_bytes, echo, batches))
        else:
            name = _text(topic_bytes)
            if name is None:
                return None
            topics.append(TopicBatches(name, echo, batches))
    if position >= end or octets[position] != 0:
        return None
    return ProduceFrame(version, _int32(octets, 4), acks, topic_count_bytes, topics)


def _after_client_id(octets: memoryview) -> int:
    """Where the header's tagged fields begin; `_BAD` if the client id is not plain ASCII, or cut off."""
    position = _CLIENT_ID_POSITION + 2
    following = position + _int16(octets, _CLIENT_ID_POSITION)
    if following == position - 1:
        return position  # null
    if following < position or following > len(octets):
        return _BAD
    while position < following:
        if octets[position] >= 0x80:
            return _BAD
        position += 1
    return position


def _read_batches(
    frame: memoryview,
    octets: memoryview,
    position: int,
    count: int,
    batches: list[tuple[int, memoryview]],
) -> int:
    """Add the batches of one topic; the position after them, `_BAD` if they are not as they should be."""
    end = len(octets)
    if count < 0:
        return _BAD
    for _ in range(count):
        if position + 5 > end:
            return _BAD
        index = _int32(octets, position)
        position += 4
        length = _compact_length(octets, position, end)
        position += _varint_size(octets, position, end)
        if length <= 0 or position + length >= end or octets[position + length] != 0:
            return _BAD
        if length > _ATTRIBUTES_POSITION and octets[position + _ATTRIBUTES_POSITION] & _TRANSACTIONAL_FLAG:
            return _BAD
        batches.append((index, frame[position : position + length]))
        position += length + 1
    return position


class Place(Protocol):
    """Where a batch went."""

    @property
    def base_offset(self) -> int:
        """Of its first record."""

    @property
    def log_append_time_ms(self) -> int:
        """-1 when the records keep the producer's time."""

    @property
    def log_start_offset(self) -> int:
        """Where the log begins now."""


def answer_produce(request: ProduceFrame, places: Sequence[Place]) -> bytes:
    """The answer when every batch was appended."""
    parts = [b"", request.topic_count]
    following = iter(places)
    for topic in request.topics:
        parts.append(topic.echo)
        for index, _ in topic.batches:
            place = next(following)
            parts.append(
                _pack_row(index, 0, place.base_offset, place.log_append_time_ms, place.log_start_offset)
            )
            parts.append(_AFTER_ROW)
        parts.append(_AFTER_TOPIC)
    parts.append(_END)
    size = sum(map(len, parts))
    parts[0] = _pack_start(size + 5, request.correlation_id, 0)
    return b"".join(parts)


def _text(name: bytes) -> str | None:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None


def _int16(octets: memoryview, position: int) -> int:
    number = (octets[position] << 8) | octets[position + 1]
    return number - 0x10000 if number >= 0x8000 else number


def _int32(octets: memoryview, position: int) -> int:
    high = _int16(octets, position)
    return high * 0x10000 + ((octets[position + 2] << 8) | octets[position + 3])


def _varint_size(octets: memoryview, position: int, end: int) -> int:
    """Bytes of the number at `position`; one whose length was found bad has any."""
    size = 1
    while position + size < end and octets[position + size - 1] >= 0x80:
        size += 1
    return size


def _compact_length(octets: memoryview, position: int, end: int) -> int:
    """A length as flexible versions write it, one more than it is; `_BAD` if it is cut off, or null."""
    number = 0
    for shift in range(0, 28, 7):
        if position >= end:
            return -1
        number |= (octets[position] & 0x7F) << shift
        if octets[position] < 0x80:
            return number - 1
        position += 1
    return -1
