"""The CRC-32C of many batches in one call; compiled by Cython, or interpreted as is.

A call of the `crc32c` package costs more than the CRC of a small batch, and logs of small batches have
millions of them. So small ones are done here, eight bytes a step by tables; large ones go to the package,
which has the processor do it. Interpreted, all of them go there.
"""

from __future__ import annotations

from array import array

import cython

from odradek.records.crc import crc32c
from odradek.records.kernels.layout import BATCH_ROW_WIDTH, BatchColumn

IS_COMPILED = cython.compiled

# C types of all these by checksums.pxd.
_WIDTH = BATCH_ROW_WIDTH
_POSITION = BatchColumn.POSITION
_SIZE = BatchColumn.SIZE_IN_BYTES
_CRC = BatchColumn.CRC
_SMALL_BYTES = 1024 if cython.compiled else 0
_ALL_ONES = 0xFFFFFFFF


def _make_tables():
    """Table k, at 256 * k: the CRC of each byte followed by k zero bytes (polynomial 1EDC6F41, reflected)."""
    tables = array("I", bytes(4 * 8 * 256))
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        tables[byte] = crc
    for at in range(256, 8 * 256):
        previous = tables[at - 256]
        tables[at] = (previous >> 8) ^ tables[previous & 0xFF]
    return tables


_TABLES = memoryview(_make_tables())


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _crc_of(
    buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.uint:
    """The CRC of `buffer[position:end]`."""
    crc: cython.uint = _ALL_ONES
    while end - position >= 8:
        crc = (
            _TABLES[1792 + ((crc ^ buffer[position]) & 0xFF)]
            ^ _TABLES[1536 + (((crc >> 8) ^ buffer[position + 1]) & 0xFF)]
            ^ _TABLES[1280 + (((crc >> 16) ^ buffer[position + 2]) & 0xFF)]
            ^ _TABLES[1024 + (((crc >> 24) ^ buffer[position + 3]) & 0xFF)]
            ^ _TABLES[768 + buffer[position + 4]]
            ^ _TABLES[512 + buffer[position + 5]]
            ^ _TABLES[256 + buffer[position + 6]]
            ^ _TABLES[buffer[position + 7]]
        )
        position += 8
    while position < end:
        crc = (crc >> 8) ^ _TABLES[(crc ^ buffer[position]) & 0xFF]
        position += 1
    return crc ^ _ALL_ONES


def count_whole(
    buffer: cython.const[cython.uchar][::1], batches: cython.longlong[::1], count: cython.Py_ssize_t
):
    """How many at the front of the first `count` batches in a scan of `buffer` have the CRC they claim."""
    index: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t
    end: cython.Py_ssize_t
    view = memoryview(buffer)
    if not 0 <= count * _WIDTH <= len(batches):
        raise IndexError(f"{count} batches are not within {len(batches)}")
    if count and not batches[(count - 1) * _WIDTH + _POSITION] + batches[(count - 1) * _WIDTH + _SIZE] <= len(
        view
    ):
        raise IndexError("the batches are not within the buffer")
    while index < count:
        with cython.nogil:
            while index < count and batches[at + _SIZE] <= _SMALL_BYTES:
                start = batches[at + _POSITION]
                if _crc_of(buffer, start + 21, start + batches[at + _SIZE]) != batches[at + _CRC]:
                    break
                index += 1
                at += _WIDTH
        if index == count or batches[at + _SIZE] <= _SMALL_BYTES:
            break
        start = batches[at + _POSITION]
        end = start + batches[at + _SIZE]
        if crc32c(view[start + 21 : end]) != batches[at + _CRC]:
            break
        index += 1
        at += _WIDTH
    return index
