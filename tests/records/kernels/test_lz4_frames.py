"""LZ4 frames block by block: the library reads what we write, and we read of it what it reads itself."""

from __future__ import annotations

from types import ModuleType

import cramjam
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from odradek.records.kernels import lz4_frames
from odradek.records.kernels.lz4_frames import HEADERS, NOT_ORDINARY
from records.conftest import interpreted

TWINS = {"compiled": lz4_frames, "interpreted": interpreted("kernels/lz4_frames")}
BOTH = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
BLOCK_BYTES = 64 * 1024
OUTPUT_BYTES = 3 * BLOCK_BYTES
END = bytes(4)
FIRST_HEADER = next(iter(HEADERS))


@pytest.fixture(params=list(TWINS))
def twin(request: pytest.FixtureRequest) -> ModuleType:
    return TWINS[request.param]


def read(twin: ModuleType, frame: bytes, output_bytes: int = OUTPUT_BYTES) -> bytes | None:
    output = bytearray(output_bytes)
    size = twin.decompress_into(memoryview(frame), 0, memoryview(output))
    return None if size == NOT_ORDINARY else bytes(output[:size])


plains = st.builds(
    lambda text, times, noise: text * times + noise,
    st.binary(max_size=200),
    st.integers(0, 900),
    st.binary(max_size=200),
).map(lambda plain: plain[:OUTPUT_BYTES])


@BOTH
@given(plain=plains)
@example(plain=b"")
@example(plain=bytes(OUTPUT_BYTES))
def test_what_we_write_the_library_and_we_read(twin: ModuleType, plain: bytes) -> None:
    frame = twin.compress(memoryview(plain))

    assert bytes(cramjam.lz4.decompress(frame)) == plain
    assert read(twin, frame) == plain


def test_what_does_not_shrink_is_stored_plain(twin: ModuleType) -> None:
    noise = bytes((index * index * 31 + index * 7) % 251 for index in range(12)) + b"\x00\xff"
    frame = twin.compress(memoryview(noise))

    assert noise in frame
    assert read(twin, frame) == noise


@pytest.mark.parametrize(("header", "largest"), HEADERS.items())
def test_the_library_knows_every_header(twin: ModuleType, header: bytes, largest: int) -> None:
    stored = b"a" * largest
    block = (largest | 0x80000000).to_bytes(4, "little") + stored

    assert bytes(cramjam.lz4.decompress(header + block + END)) == stored
    assert read(twin, header + block + END, largest) == stored


@BOTH
@given(plain=plains, data=st.data())
def test_damage_is_never_read_as_something_that_the_library_reads_otherwise(
    twin: ModuleType, plain: bytes, data: st.DataObject
) -> None:
    frame = bytearray(twin.compress(memoryview(plain)))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    frame = frame[: data.draw(st.integers(0, len(frame)) | st.just(len(frame)))]

    found = read(twin, bytes(frame))

    if found is not None:
        assert bytes(cramjam.lz4.decompress(bytes(frame))) == found


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        FIRST_HEADER[:6],
        FIRST_HEADER,
        FIRST_HEADER + b"\x00\x00\x00",
        FIRST_HEADER + b"\x05\x00\x00\x00abcd",
        FIRST_HEADER + (BLOCK_BYTES + 1 | 0x80000000).to_bytes(4, "little") + bytes(BLOCK_BYTES + 1) + END,
        FIRST_HEADER + b"\x00\x00\x00\x80" + END,
        FIRST_HEADER + END + b"more",
        FIRST_HEADER[:6] + b"\x83" + END,
    ],
    ids=[
        "nothing",
        "half a header",
        "no block",
        "half a length",
        "block cut",
        "block too large",
        "empty stored block",
        "bytes behind the end",
        "wrong header checksum",
    ],
)
def test_what_is_not_ordinary_is_left_to_the_library(twin: ModuleType, frame: bytes) -> None:
    assert read(twin, frame) is None


def test_with_block_checksums_it_is_left_to_the_library(twin: ModuleType) -> None:
    compressor = cramjam.lz4.Compressor(level=0, content_checksum=False, block_linked=False)
    compressor.compress(b"text " * 100)

    assert read(twin, bytes(compressor.finish())) is None


@pytest.mark.parametrize("is_stored", [False, True], ids=["compressed", "stored"])
def test_too_little_room_is_not_written_over(twin: ModuleType, is_stored: bool) -> None:
    plain = b"text " * 100
    frame = twin.compress(memoryview(plain))
    if is_stored:
        frame = FIRST_HEADER + (len(plain) | 0x80000000).to_bytes(4, "little") + plain + END
    output = bytearray(len(plain))

    assert twin.decompress_into(memoryview(frame), 0, memoryview(output)[: len(plain) - 1]) == NOT_ORDINARY
    assert output[-1] == 0
