# cython: annotation_typing=False
"""LZ4 frames as Kafka's clients write them, block by block.

    04 22 4D 18            magic
    60                     version 1, blocks stand alone, no checksums, no size
    40, 50, 60, 70         the largest block: 64 KiB, 256 KiB, 1 MiB, 4 MiB
    header checksum        one byte, which these three decide
    blocks                 int32 length, little endian, highest bit set if stored plain; the bytes
    00 00 00 00            the end

Whole frames cost twice as much: for them the library makes, clears and copies buffers of its own.
Compiled by Cython (lz4_frames.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import cramjam
import cython

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import copied, part_of, raw_bytes
else:
    from odradek.common.byte_access import copied, part_of, raw_bytes

NOT_ORDINARY = -1
_NOT_ORDINARY = NOT_ORDINARY
HEADERS = {
    b"\x04\x22\x4d\x18\x60\x40\x82": 64 * 1024,
    b"\x04\x22\x4d\x18\x60\x50\xfb": 256 * 1024,
    b"\x04\x22\x4d\x18\x60\x60\x51": 1024 * 1024,
    b"\x04\x22\x4d\x18\x60\x70\x73": 4 * 1024 * 1024,
}
"""What a frame begins with, and what its blocks hold at most."""
_LARGEST_BLOCKS = HEADERS
_HEADER_BYTES = 7
_LENGTH_BYTES = 4
_STORED_FLAG = 0x80000000
_END = bytes(_LENGTH_BYTES)
_WRITTEN_HEADER = next(iter(HEADERS))
_WRITTEN_BLOCK_BYTES = HEADERS[_WRITTEN_HEADER]

_compress_block = cramjam.lz4.compress_block
_decompress_block_into = cramjam.lz4.decompress_block_into
_DecompressionError = cramjam.DecompressionError


def decompress_into(view: memoryview, start: int, output: memoryview) -> int:
    """Fill `output` from the frame that begins at `start` and ends with the view; how many bytes.

    `NOT_ORDINARY` for other frames, damaged ones, and if it does not fit.
    """
    raw = raw_bytes(view)
    end = len(view)
    position = start + _HEADER_BYTES
    largest = _LARGEST_BLOCKS.get(copied(raw, start, position)) if 0 <= start <= end - _HEADER_BYTES else None
    if largest is None:
        return _NOT_ORDINARY
    block_limit = largest
    written, limit = 0, len(output)
    while end - position >= _LENGTH_BYTES:
        length = (
            raw[position]
            | raw[position + 1] << 8
            | raw[position + 2] << 16
            | (raw[position + 3] & 0x7F) << 24
        )
        is_stored = raw[position + 3] >= 0x80
        position += _LENGTH_BYTES
        if length == 0:
            return written if position == end and not is_stored else _NOT_ORDINARY
        if length > block_limit or length > end - position:
            return _NOT_ORDINARY
        block = part_of(view, position, position + length)
        position += length
        if is_stored:
            if length > limit - written:
                return _NOT_ORDINARY
            output[written : written + length] = block
            written += length
        else:
            free = min(block_limit, limit - written)
            try:
                written += _decompress_block_into(block, part_of(output, written, written + free), free)
            except _DecompressionError:
                return _NOT_ORDINARY
    return _NOT_ORDINARY


def compress(plain: memoryview) -> bytes:
    """A frame of blocks of 64 KiB, by the fast compressor."""
    parts: list[object] = [_WRITTEN_HEADER]
    for start in range(0, len(plain), _WRITTEN_BLOCK_BYTES):
        stored = plain[start : start + _WRITTEN_BLOCK_BYTES]
        block = memoryview(_compress_block(stored, store_size=False))
        if len(block) < len(stored):
            parts += (len(block).to_bytes(_LENGTH_BYTES, "little"), block)
        else:
            parts += ((len(stored) | _STORED_FLAG).to_bytes(_LENGTH_BYTES, "little"), stored)
    parts.append(_END)
    return b"".join(parts)  # type: ignore[arg-type]
