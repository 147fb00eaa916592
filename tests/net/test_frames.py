from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.net.frames import FIRST_CAPACITY, LARGE_BYTES, BufferPool, FrameAssembler, FrameTooLarge


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def an_assembler(max_frame_bytes: int) -> FrameAssembler:
    return FrameAssembler(max_frame_bytes, BufferPool())


def received(assembler: FrameAssembler, chunks: list[bytes]) -> list[bytes]:
    """What a connection does with chunks as they come from the socket."""
    frames = []
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            free_space = assembler.free_space()
            if free_space is None:
                only = assembler.only_frame(rest, len(rest))
                frames += [bytes(frame) for frame in (assembler.feed(rest) if only is None else [only])]
                assembler.done()
                break
            count = min(len(free_space), len(rest))
            free_space[:count] = rest[:count]
            free_space.release()
            frame = assembler.filled(count)
            if frame is not None:
                frames.append(bytes(frame))
                assembler.done()
            rest = rest[count:]
    return frames


@given(st.lists(st.binary(max_size=40), max_size=8), st.data())
def test_frames_do_not_depend_on_how_the_bytes_were_cut(payloads: list[bytes], draws: st.DataObject) -> None:
    stream = b"".join(map(framed, payloads))
    cuts = sorted(draws.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assembler = an_assembler(100)

    assert received(assembler, chunks) == payloads
    assert not assembler.is_mid_frame


def test_a_frame_that_came_whole_is_not_copied() -> None:
    stream = bytearray(framed(b"abc"))
    (frame,) = an_assembler(100).feed(memoryview(stream))
    alone = an_assembler(100).only_frame(memoryview(stream), len(stream))
    stream[4] = ord("X")
    assert alone is not None
    assert bytes(frame) == bytes(alone) == b"Xbc"


@given(st.binary(max_size=20), st.integers(0, 24), st.integers(0, 20))
def test_only_a_frame_that_came_alone_and_whole_is_taken_as_one(
    payload: bytes, count: int, max_frame_bytes: int
) -> None:
    buffer = memoryview(framed(payload) + bytes(24))

    only = an_assembler(max_frame_bytes).only_frame(buffer, count)

    is_whole = count == 4 + len(payload) and len(payload) <= max_frame_bytes
    assert (None if only is None else bytes(only)) == (payload if is_whole else None)
    if only is not None:
        # A view like any other, made by hand or not.
        assert (only[len(payload) :], only.tolist(), only.nbytes) == (b"", list(payload), len(payload))


def test_a_large_frame_grows_with_what_arrives() -> None:
    size = 100 * 1024 * 1024
    assembler = an_assembler(size)
    assert assembler.feed(memoryview(size.to_bytes(4, "big") + b"x")) == []
    free_space = assembler.free_space()
    assert free_space is not None
    assert len(free_space) == FIRST_CAPACITY - 1


def test_a_large_frame_arrives_whole() -> None:
    payload = bytes(range(256)) * 2000
    assembler = an_assembler(len(payload))
    chunks = [framed(payload)[start : start + 7001] for start in range(0, len(payload) + 4, 7001)]
    assert received(assembler, chunks) == [payload]


@pytest.mark.parametrize("size", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\x65"])
def test_a_size_beyond_the_limit_is_refused_before_anything_is_kept(size: bytes) -> None:
    with pytest.raises(FrameTooLarge, match="at most 100 are allowed"):
        an_assembler(100).feed(memoryview(size + b"rest"))


def test_a_grown_buffer_serves_the_next_large_frame() -> None:
    pool = BufferPool(max_bytes=1_000_000)
    first, second = FrameAssembler(500_000, pool), FrameAssembler(500_000, pool)
    payload, shorter = bytes(400_000), b"x" * 300_000
    assert received(first, [framed(payload)[:1000], framed(payload)[1000:]]) == [payload]
    second.feed(memoryview(framed(shorter)[:1000]))
    free_space = second.free_space()
    assert free_space is not None
    assert len(free_space) == len(shorter) - 996
    free_space.release()
    assert received(second, [framed(shorter)[1000:]]) == [shorter]


def test_the_pool_keeps_no_more_than_it_may() -> None:
    pool = BufferPool(max_bytes=100)
    pool.release(bytearray(60))
    pool.release(bytearray(70))
    pool.release(bytearray(101))
    assert len(pool.acquire(65)) == 70
    assert len(pool.acquire(65)) == 65


def test_after_a_large_frame_another_one_is_expected_until_a_small_one_comes() -> None:
    assembler = FrameAssembler(10 * LARGE_BYTES, BufferPool())
    large = framed(bytes(LARGE_BYTES + 1))
    assert not assembler.is_large_expected
    assembler.feed(memoryview(large[:5000]))
    assembler.feed(memoryview(large[5000:]))
    assert assembler.is_large_expected
    assert assembler.only_frame(memoryview(framed(b"small")), 9) is not None
    assert not assembler.is_large_expected
    assembler.feed(memoryview(large[:5000]))
    assert assembler.is_large_expected
    assembler.feed(memoryview(large[5000:] + framed(b"a") + framed(b"b")))
    assert not assembler.is_large_expected
