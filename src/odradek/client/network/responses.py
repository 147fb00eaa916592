# cython: annotation_typing=False
"""Splits received bytes into responses, each in a buffer of its own.

    int32 size | int32 correlation id | rest of header and body

A response that is not received at once is received into a buffer of exactly its size, so that the
records of a large fetch are written once by the kernel and never copied. Small ones are copied from the
shared receive buffer, which costs less than a system call each.

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
MAX_RESPONSE_BYTES = 1024 * 1024 * 1024
"""More than any broker sends, less than the bytes "HTTP" read as a size."""
_TLS_ALERT = 0x150303
"""The first three bytes of a TLS 1.2 or 1.3 alert; as a size, 352 MB."""
MOST_SPARES = 4
"""One being received, one being read, and those that are buffered."""
SPARE_STEP_BYTES = 1024 * 1024
MAX_SPARE_BYTES = 16 * SPARE_STEP_BYTES


class BadResponse(OdradekError):
    """Bytes that are not a valid response."""


def _references_to_unused() -> int:
    """The reference count of a buffer without views; each view adds one."""
    buffers = [bytearray()]
    return sys.getrefcount(buffers[0])


_UNUSED = _references_to_unused()


class SpareBuffers:
    """Buffers of large responses, reused when no view of them is left.

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
    """The responses of one connection: received bytes go to `buffer`; `filled` returns complete responses."""

    __slots__ = ("_filled", "_kept", "_max_bytes", "_received", "_response", "_spares")

    def __init__(self, max_response_bytes: int = MAX_RESPONSE_BYTES) -> None:
        self._received = memoryview(bytearray(RECEIVE_BYTES))
        self._kept = 0  # bytes of an incomplete size at the front of _received
        self._response: memoryview | None = None  # the response that is being received into its own buffer
        self._filled = 0
        self._max_bytes = max_response_bytes
        self._spares = SpareBuffers()

    @property
    def is_mid_response(self) -> bool:
        """Whether a response has been received in part."""
        return self._response is not None or self._kept > 0

    def buffer(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._response is not None:
            return self._response[self._filled :]
        return self._received[self._kept :] if self._kept else self._received

    def filled(self, count: int) -> list[memoryview]:
        """`count` bytes were read into `buffer`; returns the complete responses, without their sizes."""
        if self._response is None:
            return self._split(self._kept + count)
        self._filled += count
        if self._filled < len(self._response):
            return []
        response, self._response = self._response, None
        return [response]

    def _split(self, end: int) -> list[memoryview]:
        responses: list[memoryview] = []
        received, position = self._received, 0
        while end - position >= _SIZE_BYTES:
            size = self._read_size(position)
            position += _SIZE_BYTES
            if size > end - position:
                self._begin(size, received[position:end])
                self._kept = 0
                return responses
            responses.append(memoryview(bytearray(received[position : position + size])))
            position += size
        self._kept = end - position
        if self._kept:
            received[: self._kept] = bytes(received[position:end])
        return responses

    def _begin(self, size: int, first: memoryview) -> None:
        response = self._spares.acquire(size)
        response[: len(first)] = first
        self._response, self._filled = response, len(first)

    def _read_size(self, position: int) -> int:
        size: int = int32_at(raw_bytes(self._received), position)
        if size >> 8 == _TLS_ALERT:
            raise BadResponse("it uses TLS, which this client does not support")
        if _SIZE_BYTES <= size <= self._max_bytes:
            return size
        if bytes(self._received[position : position + _SIZE_BYTES]) == b"HTTP":
            raise BadResponse("it uses HTTP")
        raise BadResponse(f"a response of {size} bytes")
