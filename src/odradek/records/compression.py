"""The codecs of record batches: none, gzip, snappy, lz4, zstd; every decompression has a limit."""

from __future__ import annotations

from enum import IntEnum


class Codec(IntEnum):
    """How the records of a batch are compressed; the number is the low three bits of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4
