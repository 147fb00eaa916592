"""The codecs of record batches: none, gzip, snappy, lz4, zstd; every decompression has a limit.

Snappy comes in two shapes. Java frames it ("xerial"), others send one raw block; we write the frame and read
both:

    82 'S' 'N' 'A' 'P' 'P' 'Y' 00     magic
    00 00 00 01  00 00 00 01          version, oldest version that can read it
    length (int32), raw snappy block  … until the end

LZ4 is the frame format with independent blocks (Java refuses blocks that lean on earlier ones); lz4_frames.py
has the frames that all clients write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any

import cramjam

from odradek.records.errors import CorruptBatch, DecompressedTooLarge
from odradek.records.kernels import lz4_frames
from odradek.records.kernels.record_check import new_bytearray

Buffer = bytes | bytearray | memoryview


class Codec(IntEnum):
    """How the records of a batch are compressed; the number is the low three bits of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
XERIAL_BLOCK_BYTES = 32 * 1024

GZIP_DEFAULT_LEVEL = -1
"""Kafka's default, zlib's word for "the usual", which is 6."""
LZ4_DEFAULT_LEVEL = 9
"""Kafka's default by name; there it does not mean "high compression 9" but the fast compressor."""
ZSTD_DEFAULT_LEVEL = 3

_GUESS_FACTOR = 16
"""More than most data shrinks. Too small a guess costs a second run over the input, so the steps are wide."""
_OUTPUT_FULL = "failed to write whole buffer"
"""How cramjam's gzip, lz4 and zstd say that the output had no space; anything else is damage."""


def compress(codec: Codec, plain: Buffer, level: int | None = None) -> Buffer:
    """Compress as Kafka's clients do; `level` is the codec's own, Kafka's default if None."""
    match codec:
        case Codec.NONE:
            return plain
        case Codec.GZIP:
            usual = level is None or level == GZIP_DEFAULT_LEVEL
            return memoryview(cramjam.gzip.compress(plain, level=6 if usual else level))
        case Codec.SNAPPY:
            return _compress_xerial(plain)
        case Codec.LZ4:
            return _compress_lz4(plain, level)
        case Codec.ZSTD:
            return memoryview(
                cramjam.zstd.compress(plain, level=ZSTD_DEFAULT_LEVEL if level is None else level)
            )


def decompress(codec: Codec, compressed: Buffer, max_bytes: int) -> Buffer:
    """Decompress to at most `max_bytes`: DecompressedTooLarge beyond, CorruptBatch if it is damaged.

    Never much more memory than `max_bytes` is used, whatever sizes the input claims.
    """
    match codec:
        case Codec.NONE:
            if len(compressed) > max_bytes:
                raise DecompressedTooLarge(max_bytes)
            return compressed
        case Codec.SNAPPY:
            return _decompress_snappy(memoryview(compressed), max_bytes)
        case _:
            with DecompressedView(codec, compressed, max_bytes) as plain:
                # A copy of the right size is cheaper than a large buffer that is cut.
                return bytearray(plain) if isinstance(plain, memoryview) else plain


_INTO = {
    Codec.GZIP: cramjam.gzip.decompress_into,
    Codec.LZ4: cramjam.lz4.decompress_into,
    Codec.ZSTD: cramjam.zstd.decompress_into,
}
DecompressInto = Callable[[Any, Any], int]
_SCRATCH_BYTES = 1024 * 1024
"""More than most batches have; larger ones get a buffer of their own."""
free_scratch: list[memoryview] = []
"""Large buffers that are not in use; a list's `pop` and `append` are safe between threads."""


def new_scratch() -> memoryview:
    """One more, for when none is free; it holds anything."""
    return memoryview(new_bytearray(_SCRATCH_BYTES))


class DecompressedView:
    """What a batch decompresses to, for as long as one `with` block: its buffer is used again.

    Making a fresh buffer costs several times what decompressing an ordinary batch does.
    """

    __slots__ = ("_codec", "_compressed", "_max_bytes", "_scratch")

    def __init__(self, codec: Codec, compressed: Buffer, max_bytes: int) -> None:
        self._codec = codec
        self._compressed = compressed
        self._max_bytes = max_bytes
        self._scratch: memoryview | None = None

    def __enter__(self) -> Buffer:
        decompress_into = _INTO.get(self._codec)
        if decompress_into is None:
            return decompress(self._codec, self._compressed, self._max_bytes)
        self._scratch = free_scratch.pop() if free_scratch else new_scratch()
        output = self._scratch[: self._max_bytes]
        size = lz4_frames.NOT_ORDINARY
        if self._codec is Codec.LZ4:
            size = lz4_frames.decompress_into(memoryview(self._compressed), 0, output)
        if size < 0:
            size = _decompress_if_fits(decompress_into, self._compressed, output)
        if size < 0:
            return _decompress_growing(decompress_into, self._compressed, self._max_bytes)
        return output[:size]

    def __exit__(self, *_: object) -> None:
        if self._scratch is not None:
            free_scratch.append(self._scratch)
            self._scratch = None


def _decompress_if_fits(decompress_into: DecompressInto, compressed: Buffer, output: memoryview) -> int:
    """Fill `output`; the number of bytes, -1 if it is too small or the input damaged."""
    try:
        return decompress_into(compressed, output)
    except cramjam.DecompressionError:
        return -1


def _decompress_growing(decompress_into: DecompressInto, compressed: Buffer, max_bytes: int) -> bytearray:
    """Try ever larger outputs up to the limit.

    The frames of these codecs need not say how large their content is, and if they do they may lie.
    """
    output = min(max_bytes, max(_SCRATCH_BYTES, _GUESS_FACTOR * len(compressed)))
    while True:
        plain = new_bytearray(output)
        try:
            size = decompress_into(compressed, plain)
        except cramjam.DecompressionError as error:
            if _OUTPUT_FULL not in str(error):
                raise CorruptBatch(f"records do not decompress: {error}") from None
            if output >= max_bytes:
                raise DecompressedTooLarge(max_bytes) from None
            del plain  # before the next one is made
            output = min(max_bytes, output * _GUESS_FACTOR)
        else:
            del plain[size:]
            return plain


def _compress_lz4(plain: Buffer, level: int | None) -> bytes:
    if level is None or level == LZ4_DEFAULT_LEVEL:
        return lz4_frames.compress(memoryview(plain))
    compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    compressor.compress(bytes(plain))
    return bytes(compressor.finish())


def _compress_xerial(plain: Buffer) -> bytearray:
    framed = bytearray(XERIAL_HEADER)
    view = memoryview(plain)
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = memoryview(cramjam.snappy.compress_raw(view[start : start + XERIAL_BLOCK_BYTES]))
        framed += len(block).to_bytes(4, "big")
        framed += block
    return framed


def _decompress_snappy(compressed: memoryview, max_bytes: int) -> bytearray:
    """Sum the sizes that the blocks claim, check the sum, then fill one exact buffer."""
    try:
        total = sum(cramjam.snappy.decompress_raw_len(block) for block in _snappy_blocks(compressed))
        if total > max_bytes:
            raise DecompressedTooLarge(max_bytes)
        plain = new_bytearray(total)
        output = memoryview(plain)
        for block in _snappy_blocks(compressed):
            output = output[cramjam.snappy.decompress_raw_into(block, output) :]
    except cramjam.DecompressionError as error:
        raise CorruptBatch(f"records do not decompress: {error}") from None
    return plain


def _snappy_blocks(compressed: memoryview) -> Iterator[memoryview]:
    """The raw blocks of either shape; a new iterator each time, since a malicious frame has very many."""
    if compressed[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        yield compressed
        return
    position = len(XERIAL_HEADER)
    while position < len(compressed):
        length = int.from_bytes(compressed[position : position + 4], "big")
        start = position + 4
        position = start + length
        if length == 0 or position > len(compressed):
            raise CorruptBatch(f"records do not decompress: a snappy block of {length} bytes")
        yield compressed[start:position]
