"""Requests and responses as frames: size, header, body.

| bytes | request | response |
| --- | --- | --- |
| 4 | size of what follows | size of what follows |
| 2 + 2 | api key, api version | |
| 4 | correlation id | correlation id |
| rest | client id, tagged fields, body | tagged fields, body |
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from odradek.common.error_codes import ErrorCode
from odradek.protocol import codec
from odradek.protocol.api import (
    request_class,
    request_header_version,
    response_class,
    response_header_version,
)
from odradek.protocol.api_key import ApiKey
from odradek.protocol.errors import DecodeError, ProtocolError
from odradek.protocol.limits import DEFAULT_LIMITS, DecodeLimits
from odradek.protocol.messages import RequestHeader, ResponseHeader
from odradek.protocol.structs import Message

Buffer = bytes | bytearray | memoryview
_START = struct.Struct(">hhi")
# Looking a member up is several times faster than making it from its number.
_API_KEYS = {int(api_key): api_key for api_key in ApiKey}


class UnknownApi(ProtocolError):
    """A request for an API that does not exist."""

    def __init__(self, api_key: int, version: int, correlation_id: int) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        super().__init__(f"there is no API with key {api_key}", error_code=ErrorCode.UNSUPPORTED_VERSION)


class RequestStart(NamedTuple):
    """The first eight bytes of a request: enough to route it, or to answer with an error."""

    api_key: ApiKey
    version: int
    correlation_id: int


def peek_request(frame: Buffer) -> RequestStart:
    """Which request a frame (without its size) holds."""
    if len(frame) < _START.size:
        raise DecodeError(f"a request of {len(frame)} bytes has no header", 0)
    api_key, version, correlation_id = _START.unpack_from(frame)
    known = _API_KEYS.get(api_key)
    if known is None:
        raise UnknownApi(api_key, version, correlation_id)
    return RequestStart(known, version, correlation_id)


def decode_request_header(
    frame: Buffer, start: RequestStart, limits: DecodeLimits = DEFAULT_LIMITS
) -> tuple[RequestHeader, int]:
    """The header of a request, and where its body begins; works for versions we do not know, too."""
    return RequestHeader.decode(frame, request_header_version(start.api_key, start.version), limits=limits)


def decode_request(
    frame: Buffer, limits: DecodeLimits = DEFAULT_LIMITS
) -> tuple[RequestStart, RequestHeader, Message]:
    """A whole request.

    Bytes after it are ignored, as Kafka does: librdkafka asks for all topics (Metadata 9 and later) with four
    bytes where the compact null has one, and relies on it.
    """
    start = peek_request(frame)
    header, position = decode_request_header(frame, start, limits)
    body, _ = request_class(start.api_key).decode(frame, start.version, position, limits)
    return start, header, body


def encode_request(
    api_key: ApiKey, version: int, correlation_id: int, client_id: str | None, body: Message
) -> list[Any]:
    """A request as parts to send, size first; records fields are parts of their own."""
    header = RequestHeader(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    header_version = request_header_version(api_key, version)
    if header_version == 0:
        header.client_id = ""
    return codec.encode_frame(RequestHeader.plan(header_version), header, body.plan(version), body)


def encode_response(api_key: ApiKey, version: int, correlation_id: int, body: Message) -> list[Any]:
    """A response as parts to send, size first; records fields are parts of their own, as they were given."""
    header = ResponseHeader(correlation_id=correlation_id)
    header_plan = ResponseHeader.plan(response_header_version(api_key, version))
    return codec.encode_frame(header_plan, header, body.plan(version), body)


def decode_response(
    api_key: ApiKey, version: int, frame: Buffer, limits: DecodeLimits = DEFAULT_LIMITS
) -> tuple[int, Message]:
    """The correlation id and body of a response frame (without its size)."""
    header, position = ResponseHeader.decode(frame, response_header_version(api_key, version), limits=limits)
    body, end = response_class(api_key).decode(frame, version, position, limits)
    if end != len(frame):
        raise DecodeError(f"{len(frame) - end} bytes follow the end of the message", end)
    return header.correlation_id, body
