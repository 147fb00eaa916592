"""Cuts a stream of bytes into frames: a length of four bytes, then the request or response."""

from __future__ import annotations

import struct
from collections.abc import Callable

_SIZE = struct.Struct(">i")


class FrameReader:
    """Calls `on_frame` for every frame that is complete."""

    def __init__(self, on_frame: Callable[[bytes], None]) -> None:
        self._on_frame = on_frame
        self._received = b""

    def feed(self, payload: bytes) -> None:
        """Some bytes have arrived."""
        self._received += payload
        while len(self._received) >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._received)
            if len(self._received) < _SIZE.size + size:
                return
            frame = self._received[_SIZE.size : _SIZE.size + size]
            self._received = self._received[_SIZE.size + size :]
            self._on_frame(frame)
