"""Other protocols that knock at a Kafka port, known by the four bytes that we take for a frame's size."""

from __future__ import annotations

import struct

_TLS_HANDSHAKE = b"\x16\x03"
_HTTP_STARTS = frozenset(
    method[:4].encode()
    for method in ("GET ", "HEAD", "POST", "PUT ", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "PRI ")
)
_SSH_START = b"SSH-"


def guess(size: int) -> str | None:
    """What a client really speaks whose first frame claims this size; None if there is no telling."""
    start = struct.pack(">i", size)
    if start in _HTTP_STARTS:
        return "it looks like HTTP; this port speaks Kafka's protocol"
    if start.startswith(_TLS_HANDSHAKE):
        return "it looks like TLS; this listener takes plain connections"
    if start == _SSH_START:
        return "it looks like SSH; this port speaks Kafka's protocol"
    return None
