# cython: annotation_typing=False
"""Bytes to frames: each frame is an int32 size, then that many bytes.

Frames that arrive whole are returned as views of the buffer they were received in, without a copy. A frame
that arrives in pieces gets a buffer of its own, which grows with the bytes received: a false size does not
allocate memory. Grown buffers are used again for the next large frame.

Compiled by Cython (frames.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import cython

from odradek.common.errors import OdradekError
from odradek.net import protocol_sniffing

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import int32_at, part_of, raw_bytes
else:
    from odradek.common.byte_access import int32_at, part_of, raw_bytes

SIZE_BYTES = 4
_SIZE_BYTES = SIZE_BYTES
FIRST_CAPACITY = 64 * 1024
LARGE_BYTES = 64 * 1024
_LARGE_BYTES = LARGE_BYTES


class FrameTooLarge(OdradekError):
    """A frame with a size over the limit or below zero."""

    def __init__(self, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(
            protocol_sniffing.guess(size) or f"a frame of {size} bytes; at most {limit} are allowed"
        )


class BufferPool:
    """Unused frame buffers, shared by all connections of a listener."""

    __slots__ = ("_free", "_free_bytes", "max_bytes")

    def __init__(self, max_bytes: int = 16 * 1024 * 1024) -> None:
        self.max_bytes = max_bytes
        self._free: list[bytearray] = []
        self._free_bytes = 0

    def acquire(self, size: int) -> bytearray:
        """A buffer for a frame of `size`: a used one if it is large enough, else a new one that must grow."""
        for index in range(len(self._free) - 1, -1, -1):
            if len(self._free[index]) >= size:
                buffer = self._free.pop(index)
                self._free_bytes -= len(buffer)
                return buffer
        return bytearray(min(size, FIRST_CAPACITY))

    def release(self, buffer: bytearray) -> None:
        """Return a buffer that is not used any more."""
        if len(buffer) > self.max_bytes:
            return
        while self._free_bytes + len(buffer) > self.max_bytes:
            self._free_bytes -= len(self._free.pop(0))
        self._free.append(buffer)
        self._free_bytes += len(buffer)


class FrameAssembler:
    """The frames of one connection.

    `free_space` is the buffer for the rest of a partial frame, or None: then any buffer will do. Pass
    what was received to `feed` or `filled`, and call `done` when the returned frames have been handled.
    """

    __slots__ = (
        "_buffers",
        "_complete",
        "_filled",
        "_partial",
        "_size",
        "_size_bytes",
        "is_large_expected",
        "max_frame_bytes",
    )

    def __init__(self, max_frame_bytes: int, buffers: BufferPool) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._buffers = buffers
        self._size_bytes = b""
        self._partial: bytearray | None = None
        self._complete: bytearray | None = None
        self._size = 0
        self._filled = 0
        # Whether the last frame was large: a client that sends one mostly sends more of them.
        self.is_large_expected = False

    @property
    def is_mid_frame(self) -> bool:
        """Whether there is a partial frame."""
        return self._partial is not None or bool(self._size_bytes)

    def free_space(self) -> memoryview | None:
        """The buffer for the rest of the partial frame; None if there is none."""
        partial = self._partial
        if partial is None:
            return None
        if self._filled == len(partial):
            partial += bytes(min(len(partial), self._size - len(partial)))
        return memoryview(partial)[self._filled : self._size]

    def filled(self, count: int) -> memoryview | None:
        """`count` bytes were written to `free_space`; returns the frame if it is complete."""
        partial = self._partial
        assert partial is not None
        self._filled += count
        if self._filled < self._size:
            return None
        self._partial = None
        self._complete = partial
        return memoryview(partial)[: self._size]

    def done(self) -> None:
        """The returned frames have been handled or copied."""
        if self._complete is not None:
            self._buffers.release(self._complete)
            self._complete = None

    def only_frame(self, received: memoryview, count: int) -> memoryview | None:
        """The frame, if the first `count` bytes are exactly one frame; the usual case."""
        if count < _SIZE_BYTES or self._partial is not None or self._size_bytes:
            return None
        size = count - _SIZE_BYTES
        if size > self.max_frame_bytes or int32_at(raw_bytes(received), 0) != size:
            return None
        self.is_large_expected = False
        frame: memoryview = part_of(received, _SIZE_BYTES, count)
        return frame

    def feed(self, received: memoryview) -> list[memoryview]:
        """The frames that end within `received`, as views of it; the rest is copied and kept."""
        frames: list[memoryview] = []
        position, end = 0, len(received)
        while position < end:
            if self._partial is not None:
                position = self._copy_into_partial(received, position, frames)
                continue
            size_end = position + _SIZE_BYTES - len(self._size_bytes)
            if size_end > end:
                self._size_bytes += bytes(received[position:end])
                break
            size = self._read_size(received, position, size_end)
            position = size_end
            if size <= end - position:
                frames.append(received[position : position + size])
                position += size
                self.is_large_expected = False
            else:
                self.is_large_expected = size > _LARGE_BYTES
                self._size = size
                self._filled = 0
                self._partial = self._buffers.acquire(size)
        return frames

    def _read_size(self, received: memoryview, position: int, size_end: int) -> int:
        if self._size_bytes:
            size = int.from_bytes(self._size_bytes + bytes(received[position:size_end]), "big", signed=True)
            self._size_bytes = b""
        else:
            size = int32_at(raw_bytes(received), position)
        if not 0 <= size <= self.max_frame_bytes:
            raise FrameTooLarge(size, self.max_frame_bytes)
        return size

    def _copy_into_partial(self, received: memoryview, position: int, frames: list[memoryview]) -> int:
        free_space = self.free_space()
        assert free_space is not None
        count = min(len(free_space), len(received) - position)
        free_space[:count] = received[position : position + count]
        free_space.release()
        frame = self.filled(count)
        if frame is not None:
            frames.append(frame)
        return position + count
