# cython: annotation_typing=False
"""A repeated produce request of one batch for one partition, and its response, without the schema.

Compiled by Cython (produce_template.pxd has the C types), or interpreted as is. Only these bytes differ from
one request to the next; the others are encoded once, by the schema:

    request   int32 size, int16 api key, int16 version, int32 correlation id … length and bytes of the batch
    answer    int32 correlation id … int16 error 0, int64 base offset, int64 append time …
"""

from __future__ import annotations

import struct

import cython

from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import encode_request, encode_response
from odradek.protocol.messages import ProduceRequest, ProduceResponse

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import int64_at, raw_bytes
else:
    from odradek.common.byte_access import int64_at, raw_bytes

FIRST_VERSION, LAST_VERSION = 9, 13
TOPIC_IDS_FROM = 13
_SIZE_BYTES = _CORRELATION_ID_BYTES = 4
_START = struct.Struct(">ihhi")
_PRODUCE = int(ApiKey.PRODUCE)
_NOT_PLAIN = -1
# Of the answer, which ends with the log start offset (8 bytes), no record errors, no message, the ends of
# partition and topic, the throttle time (4) and the end of all.
_AFTER_APPEND_TIME_BYTES = 8 + 1 + 1 + 1 + 1 + 4 + 1
_LOG_START_OFFSET_BYTES = 8


class ProduceTemplate:
    """What goes to one partition through one connection; only for versions that `serves` names."""

    def __init__(
        self,
        version: int,
        client_id: str,
        *,
        acks: int,
        timeout_ms: int,
        topic: str,
        topic_id: bytes,
        partition: int,
    ) -> None:
        batch = bytearray(1)  # not bytes, which would be copied into the frame
        has_ids = version >= TOPIC_IDS_FROM
        rows = [ProduceRequest.TopicData.PartitionData(index=partition, records=batch)]
        name = {"topic_id": topic_id} if has_ids else {"name": topic}
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[ProduceRequest.TopicData(partition_data=rows, **name)],
        )
        parts = encode_request(ApiKey.PRODUCE, version, 0, client_id, request)
        place = next(place for place, part in enumerate(parts) if part is batch)
        self._version = version
        # The last byte before the batch is its length.
        self._head = b"".join(parts[:place])[_START.size : -1]
        self._tail = b"".join(parts[place + 1 :])
        fates = [ProduceResponse.Responses.PartitionResponses(index=partition)]
        response = ProduceResponse(responses=[ProduceResponse.Responses(partition_responses=fates, **name)])
        answer = b"".join(encode_response(ApiKey.PRODUCE, version, 0, response))[_SIZE_BYTES:]
        # What every answer that is good has, but for its numbers.
        self._answer_bytes = len(answer)
        self._append_time_position = len(answer) - _AFTER_APPEND_TIME_BYTES - 8
        self._base_offset_position = self._append_time_position - 8
        self._answer_start = answer[_CORRELATION_ID_BYTES : self._base_offset_position]
        self._answer_end_position = self._append_time_position + 8 + _LOG_START_OFFSET_BYTES
        self._answer_end = answer[self._answer_end_position :]

    @staticmethod
    def serves(version: int) -> bool:
        """Whether requests of this version look as they do here."""
        return FIRST_VERSION <= version <= LAST_VERSION

    def request(self, correlation_id: int, batch: bytearray | memoryview) -> bytes:
        """The whole request, size first."""
        length = _compact_length(len(batch))
        size = _START.size + len(self._head) + len(length) + len(batch) + len(self._tail) - _SIZE_BYTES
        start = _START.pack(size, _PRODUCE, self._version, correlation_id)
        return b"".join((start, self._head, length, batch, self._tail))

    def base_offset(self, answer: memoryview) -> int:
        """Where the batch went; -1 if the response (without its size) has more in it, or something else."""
        start, end = self._base_offset_position, self._answer_end_position
        if len(answer) != self._answer_bytes or answer[_CORRELATION_ID_BYTES:start] != self._answer_start:
            return _NOT_PLAIN
        if answer[end:] != self._answer_end:
            return _NOT_PLAIN
        offset: int = int64_at(raw_bytes(answer), start)
        return offset

    def log_append_time_ms(self, answer: memoryview) -> int:
        """The time that the broker gave the records, in a plain answer; -1 if they keep their own."""
        time_ms: int = int64_at(raw_bytes(answer), self._append_time_position)
        return time_ms


def _compact_length(length: int) -> bytes:
    """As flexible versions write it: one more than it is, seven bits a byte, lowest first."""
    number = length + 1
    if number < 1 << 7:
        return bytes((number,))
    if number < 1 << 14:
        return bytes((number & 0x7F | 0x80, number >> 7))
    return bytes((number & 0x7F | 0x80,)) + _compact_length((number >> 7) - 1)
