from __future__ import annotations

import pytest

from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.errors import DecodeError, UnsupportedVersion
from odradek.protocol.headers import (
    UnknownApi,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    peek_request,
)
from odradek.protocol.messages import (
    ControlledShutdownRequest,
    FetchResponse,
    HeartbeatRequest,
    MetadataRequest,
)


def frame_of(parts: list) -> bytes:
    wire = b"".join(bytes(part) for part in parts)
    assert int.from_bytes(wire[:4], "big") == len(wire) - 4
    return wire[4:]


@pytest.mark.parametrize(
    ("version", "wire"),
    [
        (3, b"\0\x0c\0\3\0\0\0\7\0\1c" + b"\0\1g\0\0\0\1\0\1m\xff\xff"),
        (4, b"\0\x0c\0\4\0\0\0\7\0\1c\0" + b"\2g\0\0\0\1\2m\0\0"),
    ],
)
def test_a_request_is_framed_with_the_header_of_its_version(version, wire):
    body = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert frame_of(encode_request(ApiKey.HEARTBEAT, version, 7, "c", body)) == wire
    start, header, decoded = decode_request(wire)
    assert (start, header.client_id, decoded) == ((ApiKey.HEARTBEAT, version, 7), "c", body)


def test_the_oldest_header_has_no_client_id():
    frame = frame_of(
        encode_request(ApiKey.CONTROLLED_SHUTDOWN, 0, 7, "c", ControlledShutdownRequest(broker_id=9))
    )
    assert frame == b"\0\7\0\0\0\0\0\7\0\0\0\x09"
    assert decode_request(frame)[2] == ControlledShutdownRequest(broker_id=9)


def test_a_response_goes_with_the_header_of_its_version():
    assert frame_of(encode_response(ApiKey.FETCH, 11, 7, FetchResponse()))[:4] == b"\0\0\0\7"
    new = frame_of(encode_response(ApiKey.FETCH, 12, 7, FetchResponse(session_id=5)))
    assert new[:5] == b"\0\0\0\7\0"
    assert decode_response(ApiKey.FETCH, 12, new) == (7, FetchResponse(session_id=5))


def test_a_version_from_the_future_still_has_a_readable_header():
    frame = b"\0\x12\0\x63\0\0\0\7\0\1c\0" + b"whatever"
    start = peek_request(frame)
    assert decode_request_header(frame, start)[0].correlation_id == 7
    with pytest.raises(UnsupportedVersion):
        decode_request(frame)


def test_an_api_that_does_not_exist_is_named():
    with pytest.raises(UnknownApi, match="no API with key 999") as caught:
        peek_request(b"\x03\xe7\0\1\0\0\0\7")
    assert (caught.value.correlation_id, caught.value.error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)


def test_a_frame_shorter_than_a_header_is_refused():
    with pytest.raises(DecodeError, match="a request of 7 bytes has no header"):
        peek_request(bytes(7))


def test_bytes_after_a_request_are_ignored_for_librdkafka_sends_some():
    # As librdkafka 2.16 sends it: Metadata 13 for all topics, with a null array of four bytes.
    frame = bytes.fromhex("0003000d00000003000772646b61666b610000000000010000")
    assert decode_request(frame)[2] == MetadataRequest(topics=None, allow_auto_topic_creation=False)


def test_bytes_after_a_response_are_refused():
    with pytest.raises(DecodeError, match="1 bytes follow the end"):
        decode_response(
            ApiKey.FETCH, 4, frame_of(encode_response(ApiKey.FETCH, 4, 7, FetchResponse())) + b"x"
        )
