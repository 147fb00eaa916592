"""Asks a broker which brokers it knows, by one Metadata request of version 0 on a socket of its own.

    request     size 4 | key 3, version 0 | correlation id | no client id (-1) | topics: none with that name
    response    size 4 | correlation id | brokers: count, then id, host, port of each | topics

A client would do, but importing one takes longer than a cluster needs to start.
"""

from __future__ import annotations

import socket
import struct

_TIMEOUT_S = 10
# The empty array asks for all topics in version 0; a topic that cannot be made keeps the response small.
_BODY = struct.pack(">hhihih", 3, 0, 1, -1, 1, 1) + b"/"
_REQUEST = struct.pack(">i", len(_BODY)) + _BODY


def live_brokers(address: str) -> set[int]:
    """The ids of the brokers in the metadata of this one."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=_TIMEOUT_S) as connection:
        connection.sendall(_REQUEST)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        return _parse(_receive(connection, size))


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        received += chunk
    return received


def _parse(response: bytes) -> set[int]:
    _, count = struct.unpack_from(">ii", response)
    position = 8
    ids = set()
    for _ in range(count):
        broker_id, host_length = struct.unpack_from(">ih", response, position)
        ids.add(broker_id)
        position += 6 + host_length + 4
    return ids
