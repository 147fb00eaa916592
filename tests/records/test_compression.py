"""The codecs: every shape that clients send, and no input that costs more than its limit."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.records.compression import XERIAL_HEADER, Codec, compress, decompress
from odradek.records.errors import CorruptBatch, DecompressedTooLarge
from records.samples import FEW, LIMIT

COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]
TEXT = b"the quick brown fox " * 10_000


@pytest.mark.parametrize("codec", list(Codec))
@FEW
@given(plain=st.binary(max_size=300), times=st.sampled_from([1, 7, 400]))
def test_what_is_compressed_comes_back(codec, plain, times):
    packed = compress(codec, plain * times)

    assert decompress(codec, packed, LIMIT) == plain * times
    assert decompress(codec, memoryview(packed), len(plain * times)) == plain * times


@pytest.mark.parametrize("codec", COMPRESSED)
def test_the_limit_is_exact(codec):
    packed = compress(codec, TEXT)

    assert decompress(codec, packed, len(TEXT)) == TEXT
    for limit in (len(TEXT) - 1, len(TEXT) // 2, 10, 0):
        with pytest.raises(DecompressedTooLarge) as caught:
            decompress(codec, packed, limit)
        assert caught.value.limit == limit


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Codec.GZIP, (-1, 1, 9)), (Codec.LZ4, (1, 9, 17)), (Codec.ZSTD, (-131072, 3, 22)), (Codec.SNAPPY, (5,))],
)
def test_every_level_that_kafka_has_a_setting_for_works(codec, levels):
    for level in levels:
        assert decompress(codec, compress(codec, TEXT, level), LIMIT) == TEXT


def test_kafkas_default_levels_are_the_defaults():
    for codec, level in ((Codec.GZIP, -1), (Codec.LZ4, 9), (Codec.ZSTD, 3)):
        assert compress(codec, TEXT, level) == compress(codec, TEXT)


def test_nothing_to_decompress_is_still_limited():
    assert decompress(Codec.NONE, b"12345", 5) == b"12345"
    with pytest.raises(DecompressedTooLarge):
        decompress(Codec.NONE, b"12345", 4)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_cut_is_corrupt_or_shorter_at_a_blocks_edge(codec):
    packed = bytes(compress(codec, TEXT))
    for cut in range(0, len(packed), max(1, len(packed) // 100)):
        try:
            plain = decompress(codec, packed[:cut], LIMIT)
        except CorruptBatch:
            continue
        # Snappy has no end mark: a cut between its blocks is for the record count to find.
        assert codec is Codec.SNAPPY
        assert TEXT.startswith(bytes(plain))
        assert len(plain) < len(TEXT)


@pytest.mark.parametrize("codec", COMPRESSED)
@FEW
@given(garbage=st.binary(max_size=200))
def test_garbage_is_corrupt_or_something_within_the_limit(codec, garbage):
    with suppress(CorruptBatch):
        assert len(decompress(codec, garbage, 10_000)) <= 10_000


@pytest.mark.parametrize("codec", COMPRESSED)
@FEW
@given(draws=st.data())
def test_damage_is_corrupt_or_within_the_limit(codec, draws):
    packed = bytearray(compress(codec, TEXT[:5000]))
    packed[draws.draw(st.integers(0, len(packed) - 1))] ^= draws.draw(st.integers(1, 255))
    with suppress(CorruptBatch):
        assert len(decompress(codec, packed, 50_000)) <= 50_000


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_bytes_after_the_end_are_corrupt(codec):
    with pytest.raises(CorruptBatch):
        decompress(codec, bytes(compress(codec, TEXT)) + b"after", LIMIT)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_frames_one_after_another_are_one_content(codec):
    packed = bytes(compress(codec, b"one ")) + bytes(compress(codec, b"two"))

    assert decompress(codec, packed, 7) == b"one two"
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, packed, 6)


def test_gzip_is_what_python_reads_and_writes():
    assert gzip.decompress(compress(Codec.GZIP, TEXT)) == TEXT
    assert decompress(Codec.GZIP, gzip.compress(TEXT), LIMIT) == TEXT


def test_snappy_is_written_in_javas_frame_and_read_raw_too():
    packed = compress(Codec.SNAPPY, TEXT)

    assert bytes(packed[:16]) == XERIAL_HEADER == bytes.fromhex("82534e41505059000000000100000001")
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), LIMIT) == TEXT


@pytest.mark.parametrize(
    "blocks",
    [
        b"\x00\x00",
        b"\x00\x00\x00\x09abc",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x05\xff\xff\xff\xff\x0f",
        b"\x00\x00\x00\x00" * 1000,
    ],
    ids=["length cut", "block cut", "length of 4 GiB", "block that claims 4 GiB", "empty blocks"],
)
def test_a_lying_snappy_frame_is_refused_without_allocating(blocks):
    with pytest.raises(CorruptBatch):
        decompress(Codec.SNAPPY, XERIAL_HEADER + blocks, LIMIT)


def test_lz4_blocks_are_independent_because_java_reads_no_others():
    flags = bytes(compress(Codec.LZ4, TEXT))[4]

    assert flags & 0b0010_0000  # independent blocks
    assert not flags & 0b0000_0100  # no content checksum


def test_lz4_with_dependent_blocks_is_read():
    linked = bytes(cramjam.lz4.compress(TEXT))
    assert not linked[4] & 0b0010_0000

    assert decompress(Codec.LZ4, linked, LIMIT) == TEXT


BOMB = """
import resource, sys, cramjam
from odradek.records.compression import Codec, compress, decompress
from odradek.records.errors import CorruptBatch, DecompressedTooLarge

codec = Codec[sys.argv[1]]
block = bytes(1 << 20)
one = bytes(compress(codec, block))
packed = one * 512 if codec is not Codec.SNAPPY else one[:16] + one[16:] * 512
if sys.argv[1] == "ZSTD":
    compressor = cramjam.zstd.Compressor()
    for _ in range(512):
        compressor.compress(block)
    packed = bytes(compressor.finish())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(codec, packed, 16 << 20)
except DecompressedTooLarge:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_costs_little_more_memory_than_the_limit(codec):
    """Half a gigabyte out of a small input, against a limit of 16 MiB."""
    blown = subprocess.run(
        [sys.executable, "-c", BOMB, codec.name], capture_output=True, text=True, check=True
    )
    grown_kib = int(blown.stdout)

    assert grown_kib < 2 * 16 * 1024


def test_a_zstd_header_that_claims_a_huge_window_costs_nothing():
    """Magic, a frame that says: window of 2 GiB, no content size; then one empty last block."""
    claim = bytes.fromhex("28b52ffd 00 a8 010000")
    start = time.perf_counter()
    with pytest.raises(CorruptBatch):
        decompress(Codec.ZSTD, claim, LIMIT)
    assert time.perf_counter() - start < 1


def test_cramjam_still_says_full_in_the_words_we_know():
    for module in (cramjam.gzip, cramjam.lz4, cramjam.zstd):
        with pytest.raises(cramjam.DecompressionError, match="failed to write whole buffer"):
            module.decompress_into(bytes(module.compress(TEXT)), bytearray(5))
