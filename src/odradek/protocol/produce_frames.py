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

from collections.abc import Sequence
from typing import Protocol

try:
    import cython
except ImportError:
    from odradek.common import cython_shim as cython

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import (
        copied,
        int16_at,
        int32_at,
        octets_of,
        part_of,
        put_int32,
        put_int64,
    )
else:
    from odradek.common.byte_access import (
        copied,
        int16_at,
        int32_at,
        octets_of,
        part_of,
        put_int32,
        put_int64,
    )

FIRST_VERSION, LAST_VERSION = 9, 13
_FIRST_VERSION, _LAST_VERSION = FIRST_VERSION, LAST_VERSION
TOPIC_IDS_FROM = 13
MOST_BATCHES = 1000
"""A request for more is not ordinary: others must be served meanwhile."""
_MOST_BATCHES = MOST_BATCHES
_TOPIC_IDS_FROM = TOPIC_IDS_FROM
_CLIENT_ID_POSITION = 8
_SHORTEST = 20  # without client id and topics
_TOPIC_ID_BYTES = 16
# Of a batch: where the low byte of its attributes is, and the bit that says it belongs to a transaction.
_ATTRIBUTES_POSITION = 22
_TRANSACTIONAL_FLAG = 0x10
_BAD = -1

# Bytes of the answer: before the topics, of one partition, behind a topic, behind all.
_START_BYTES, _ROW_BYTES, _AFTER_TOPIC_BYTES, _END_BYTES = 9, 33, 1, 5
_NO_RECORD_ERRORS = 1


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
    octets = octets_of(frame)
    end = len(frame)
    if end < _SHORTEST or int16_at(octets, 0) != 0:
        return None
    version = int16_at(octets, 2)
    if version < _FIRST_VERSION or version > _LAST_VERSION:
        return None
    position = _after_client_id(octets, end)
    # Tagged fields, transactional id, acks, time-out (an append that waits for nobody has none), topics.
    if position < 0 or position + 9 > end or octets[position] != 0 or octets[position + 1] != 0:
        return None
    acks = int16_at(octets, position + 2)
    if acks != 1 and acks != -1:  # noqa: PLR1714 - compared in C
        return None
    position += 8
    start = position
    topic_count = _compact_length(octets, position, end)
    position += _varint_size(octets, position, end)
    if topic_count < 0 or topic_count > _MOST_BATCHES:
        return None
    batch_count = 0
    topic_count_bytes = copied(octets, start, position)
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
        topic_bytes = copied(octets, position, position + length)
        position += length
        partition_count = _compact_length(octets, position, end)
        position += _varint_size(octets, position, end)
        batch_count += partition_count
        if position > end or batch_count > _MOST_BATCHES:
            return None
        echo = copied(octets, start, position)
        batches: list[tuple[int, memoryview]] = []
        position = _read_batches(frame, octets, position, end, partition_count, batches)
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
    return ProduceFrame(version, int32_at(octets, 4), acks, topic_count_bytes, topics)


def _after_client_id(octets: memoryview, end: int) -> int:
    """Where the header's tagged fields begin; `_BAD` if the client id is not plain ASCII, or cut off."""
    position = _CLIENT_ID_POSITION + 2
    following = position + int16_at(octets, _CLIENT_ID_POSITION)
    if following == position - 1:
        return position  # null
    if following < position or following > end:
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
    end: int,
    count: int,
    batches: list[tuple[int, memoryview]],
) -> int:
    """Add the batches of one topic; the position after them, `_BAD` if they are not as they should be."""
    if count < 0:
        return _BAD
    for _ in range(count):
        if position + 5 > end:
            return _BAD
        index = int32_at(octets, position)
        position += 4
        length = _compact_length(octets, position, end)
        position += _varint_size(octets, position, end)
        if length <= 0 or position + length >= end or octets[position + length] != 0:
            return _BAD
        if length > _ATTRIBUTES_POSITION and octets[position + _ATTRIBUTES_POSITION] & _TRANSACTIONAL_FLAG:
            return _BAD
        batches.append((index, part_of(frame, position, position + length)))
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


def answer_produce(request: ProduceFrame, places: Sequence[Place]) -> bytearray:
    """The answer when every batch was appended."""
    size = _START_BYTES + len(request.topic_count) + _ROW_BYTES * len(places) + _END_BYTES
    for topic in request.topics:
        size += len(topic.echo) + _AFTER_TOPIC_BYTES
    # Everything that is not written below is 0: no error, no message, no tagged fields, no throttling.
    answer = bytearray(size)
    octets = answer
    put_int32(octets, 0, size - 4)
    put_int32(octets, 4, request.correlation_id)
    position = _put(octets, _START_BYTES, request.topic_count)
    count = 0
    for topic in request.topics:
        position = _put(octets, position, topic.echo)
        for index, _ in topic.batches:
            place = places[count]
            count += 1
            put_int32(octets, position, index)
            put_int64(octets, position + 6, place.base_offset)
            put_int64(octets, position + 14, place.log_append_time_ms)
            put_int64(octets, position + 22, place.log_start_offset)
            octets[position + 30] = _NO_RECORD_ERRORS
            position += _ROW_BYTES
        position += _AFTER_TOPIC_BYTES
    return answer


def _put(octets: bytearray, position: int, part: bytes) -> int:
    """Write all of `part`; the position after it."""
    for octet in part:
        octets[position] = octet
        position += 1
    return position


def _text(name: bytes) -> str | None:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return None


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
