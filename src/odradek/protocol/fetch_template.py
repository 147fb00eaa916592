# cython: annotation_typing=False
"""A repeated fetch of one partition in a session, and its response, without the schema.

Compiled by Cython (fetch_template.pxd has the C types), or interpreted as is. At the end of a log a consumer
sends the same request again and again, but for the epoch of the session and the offset; the other bytes are
encoded once, by the schema. A response is plain if it holds records of one partition and nothing else:

| bytes | what |
| --- | --- |
| 4 + 1 | correlation id, no tagged fields |
| 4 + 2 + 4 | no throttle time, no error, session id |
| 1 + 16 | one topic: its id |
| 1 + 4 + 2 | one partition: its index, no error |
| 8 + 8 + 8 | high watermark, last stable offset, log start offset |
| 1 + 4 | no aborted transactions, no preferred replica (-1) |
| 1-5, rest | length of the records, records |
| 1 + 1 + 1 | no tagged fields of partition, topic, answer |
"""

from __future__ import annotations

import cython

from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import encode_request
from odradek.protocol.messages import FetchRequest

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import (
        copied,
        int16_at,
        int32_at,
        int64_at,
        put_int32,
        put_int64,
        raw_bytes,
        writable_raw_bytes,
    )
else:
    from odradek.common.byte_access import (
        copied,
        int16_at,
        int32_at,
        int64_at,
        put_int32,
        put_int64,
        raw_bytes,
        writable_raw_bytes,
    )

FIRST_VERSION, LAST_VERSION = 13, 18
"""Topics by their ids, to the newest."""
_THROTTLE, _ERROR, _SESSION = 5, 9, 11
_TOPIC_COUNT, _TOPIC, _PARTITION_COUNT, _PARTITION, _PARTITION_ERROR = 15, 16, 32, 33, 37
_HIGH_WATERMARK, _LAST_STABLE_OFFSET, _LOG_START_OFFSET = 39, 47, 55
_ABORTED, _PREFERRED_REPLICA, _RECORDS_LENGTH = 63, 64, 68
_ONE = 2  # as a compact count
_END_BYTES = 3


class FetchTemplate:
    """What is asked of one partition through one connection, in versions from FIRST to LAST_VERSION."""

    def __init__(self, version: int, client_id: str, request: FetchRequest) -> None:
        """`request` names the one partition; its offset and the session's epoch do not matter."""
        (topic,) = request.topics
        (partition,) = topic.partitions

        def encoded(session_epoch: int, fetch_offset: int) -> bytes:
            request.session_epoch, partition.fetch_offset = session_epoch, fetch_offset
            return b"".join(encode_request(ApiKey.FETCH, version, 0, client_id, request))

        self._frame = encoded(0, 0)
        self._epoch_position = _first_difference(self._frame, encoded(-1, 0))
        self._offset_position = _first_difference(self._frame, encoded(0, -1))

    def request(self, session_epoch: int, fetch_offset: int) -> bytearray:
        """The whole request, size first, but for its correlation id."""
        frame = bytearray(self._frame)
        raw = writable_raw_bytes(memoryview(frame))
        put_int32(raw, self._epoch_position, session_epoch)
        put_int64(raw, self._offset_position, fetch_offset)
        return frame


def _first_difference(one: bytes, other: bytes) -> int:
    return next(place for place in range(len(one)) if one[place] != other[place])


def row_name(topic_id: bytes, partition: int) -> bytes:
    """The bytes that name a partition in a plain answer."""
    return topic_id + bytes([_ONE]) + partition.to_bytes(4, "big", signed=True)


class PlainFetchAnswer:
    """The one partition of a plain answer: `name` as by `row_name`, three offsets, and its records."""

    __slots__ = ("high_watermark", "last_stable_offset", "log_start_offset", "name", "records")

    def __init__(
        self,
        name: bytes,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        records: memoryview,
    ) -> None:
        self.name = name
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records = records


def read_plain_fetch(frame: memoryview, session_id: int) -> PlainFetchAnswer | None:
    """An answer (without its size) if it is plain, and of this session."""
    raw = raw_bytes(frame)
    end = len(frame) - _END_BYTES
    if end <= _RECORDS_LENGTH or raw[4] != 0 or int32_at(raw, _THROTTLE) or int16_at(raw, _ERROR):
        return None
    if int32_at(raw, _SESSION) != session_id or raw[_TOPIC_COUNT] != _ONE:
        return None
    if raw[_PARTITION_COUNT] != _ONE or int16_at(raw, _PARTITION_ERROR):
        return None
    if raw[_ABORTED] > 1 or int32_at(raw, _PREFERRED_REPLICA) != -1:
        return None
    start = _start_of_records(raw, end)
    if start < 0 or raw[end] or raw[end + 1] or raw[end + 2]:
        return None
    return PlainFetchAnswer(
        copied(raw, _TOPIC, _PARTITION_ERROR),
        int64_at(raw, _HIGH_WATERMARK),
        int64_at(raw, _LAST_STABLE_OFFSET),
        int64_at(raw, _LOG_START_OFFSET),
        frame[start:end],
    )


def _start_of_records(raw: memoryview, end: int) -> int:
    """Where the records begin, which must be some and go up to `end`; -1 otherwise."""
    position = _RECORDS_LENGTH
    number = 0
    for shift in range(0, 35, 7):
        if position >= end:
            break
        byte = raw[position]
        number |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return position if number > 1 and position + number - 1 == end else -1
    return -1
