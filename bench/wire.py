"""One request and its response on a plain socket, for requests that no client library sends."""

from __future__ import annotations

import socket
import struct
from typing import BinaryIO

from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.structs import Message


def ask(port: int, api_key: ApiKey, version: int, request: Message, *, timeout: float = 10) -> Message:
    """Connect, send one request, close. OSError without a response in time."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        return ask_on(connection, api_key, version, request)


def ask_on(connection: socket.socket, api_key: ApiKey, version: int, request: Message) -> Message:
    """Ask on a connection that stays open."""
    for part in encode_request(api_key, version, 1, "bench", request):
        connection.sendall(part)
    with connection.makefile("rb") as answer:
        (size,) = struct.unpack(">i", _exactly(answer, 4))
        _, response = decode_response(api_key, version, _exactly(answer, size))
    return response


def _exactly(source: BinaryIO, count: int) -> bytes:
    received = source.read(count)
    if len(received) != count:
        raise ConnectionError(f"the broker hung up after {len(received)} of {count} bytes")
    return received
