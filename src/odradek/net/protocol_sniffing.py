"""Detects other protocols on a Kafka port by the first four bytes, read as the size of a frame."""

from __future__ import annotations

import struct

_TLS_HANDSHAKE = b"\x16\x03"
_HTTP_STARTS = frozenset(
    method[:4].encode()
    for method in ("GET ", "HEAD", "POST", "PUT ", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "PRI ")
)
_SSH_START = b"SSH-"


def guess(size: int) -> str | None:
    """The protocol of a client whose first frame has this size; None if it is unknown."""
    start = struct.pack(">i", size)
    if start in _HTTP_STARTS:
        return "it looks like HTTP; this port uses Kafka's protocol"
    if start.startswith(_TLS_HANDSHAKE):
        return "it looks like TLS; this listener takes plain connections"
    if start == _SSH_START:
        return "it looks like SSH; this port uses Kafka's protocol"
    return None
