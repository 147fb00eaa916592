# cython: annotation_typing=False
"""Bytes to answers, for the client's side of a connection: each answer in a buffer of its own.

    int32 size | int32 correlation id | rest of header and body

An answer that does not fit what was received at once is received into its own, exact buffer, so that the
records of a large fetch are written once by the kernel and never moved again. Small ones are copied out of
the shared receive buffer, which costs less than a system call each.

Compiled by Cython (responses.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import sys

import cython

from odradek.common.errors import OdradekError
from odradek.records.kernels.record_check import new_bytearray

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import int32_at, raw_bytes
else:
    from odradek.common.byte_access import int32_at, raw_bytes

_SIZE_BYTES = 4
RECEIVE_BYTES = 64 * 1024
MAX_ANSWER_BYTES = 1024 * 1024 * 1024
"""More than any broker sends, less than what "HTTP" means as a size."""
_TLS_ALERT = 0x150303
"""The first three bytes of a TLS 1.2 or 1.3 alert; as a size, 352 MB."""
MOST_SPARES = 4
"""One that is received into, one that is read, and those that are buffered."""
SPARE_STEP_BYTES = 1024 * 1024
MAX_SPARE_BYTES = 16 * SPARE_STEP_BYTES


class BadResponse(OdradekError):
    """Bytes that cannot be an answer."""


def _references_to_unused() -> int:
    """The reference count of a buffer without views; each view adds one."""
    buffers = [bytearray()]
    return sys.getrefcount(buffers[0])


_UNUSED = _references_to_unused()


class SpareBuffers:
    """Buffers of large answers, reused when no view of them is left.

    Page faults of a new buffer cost about as much as receiving into it.
    """

    __slots__ = ("_buffers",)

    def __init__(self) -> None:
        self._buffers: list[bytearray] = []

    def acquire(self, size: int) -> memoryview:
        """A buffer of `size` bytes, with any content."""
        if not RECEIVE_BYTES < size <= MAX_SPARE_BYTES:
            return memoryview(new_bytearray(size))
        buffers = self._buffers
        unused = [place for place in range(len(buffers)) if sys.getrefcount(buffers[place]) == _UNUSED]
        for place in unused:
            if len(buffers[place]) >= size:
                return memoryview(buffers[place])[:size]
        fresh = new_bytearray(-(-size // SPARE_STEP_BYTES) * SPARE_STEP_BYTES)
        if len(buffers) < MOST_SPARES:
            buffers.append(fresh)
        elif unused:
            buffers[unused[0]] = fresh
        return memoryview(fresh)[:size]


class ResponseAssembler:
    """The answers of one connection: `buffer` takes the next bytes, `filled` returns what they complete."""

    __slots__ = ("_answer", "_filled", "_kept", "_max_bytes", "_received", "_spares")

    def __init__(self, max_answer_bytes: int = MAX_ANSWER_BYTES) -> None:
        self._received = memoryview(bytearray(RECEIVE_BYTES))
        self._kept = 0  # bytes of an incomplete size at the front of _received
        self._answer: memoryview | None = None  # the answer that is being received into its own buffer
        self._filled = 0
        self._max_bytes = max_answer_bytes
        self._spares = SpareBuffers()

    @property
    def is_mid_answer(self) -> bool:
        """Whether an answer has begun and not ended."""
        return self._answer is not None or self._kept > 0

    def buffer(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._answer is not None:
            return self._answer[self._filled :]
        return self._received[self._kept :] if self._kept else self._received

    def filled(self, count: int) -> list[memoryview]:
        """`count` bytes were read into `buffer`; the answers that are complete now, each without its size."""
        if self._answer is None:
            return self._split(self._kept + count)
        self._filled += count
        if self._filled < len(self._answer):
            return []
        answer, self._answer = self._answer, None
        return [answer]

    def _split(self, end: int) -> list[memoryview]:
        answers: list[memoryview] = []
        received, position = self._received, 0
        while end - position >= _SIZE_BYTES:
            size = self._read_size(position)
            position += _SIZE_BYTES
            if size > end - position:
                self._begin(size, received[position:end])
                self._kept = 0
                return answers
            answers.append(memoryview(bytearray(received[position : position + size])))
            position += size
        self._kept = end - position
        if self._kept:
            received[: self._kept] = bytes(received[position:end])
        return answers

    def _begin(self, size: int, first: memoryview) -> None:
        answer = self._spares.acquire(size)
        answer[: len(first)] = first
        self._answer, self._filled = answer, len(first)

    def _read_size(self, position: int) -> int:
        size: int = int32_at(raw_bytes(self._received), position)
        if size >> 8 == _TLS_ALERT:
            raise BadResponse("it speaks TLS and this client does not")
        if _SIZE_BYTES <= size <= self._max_bytes:
            return size
        if bytes(self._received[position : position + _SIZE_BYTES]) == b"HTTP":
            raise BadResponse("it speaks HTTP")
        raise BadResponse(f"an answer of {size} bytes")
