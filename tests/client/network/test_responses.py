from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.client.network.responses import (
    MAX_SPARE_BYTES,
    MOST_SPARES,
    RECEIVE_BYTES,
    BadResponse,
    ResponseAssembler,
    SpareBuffers,
)


def framed(answers: list[bytes]) -> bytes:
    return b"".join(struct.pack(">i", len(answer)) + answer for answer in answers)


def feed(assembler: ResponseAssembler, received: bytes, chunk: int) -> list[memoryview]:
    answers: list[memoryview] = []
    while received:
        buffer = assembler.buffer()
        count = min(len(buffer), chunk, len(received))
        buffer[:count] = received[:count]
        answers += assembler.filled(count)
        received = received[count:]
    return answers


@given(
    answers=st.lists(st.binary(min_size=4, max_size=300), max_size=20),
    chunk=st.integers(1, 400),
)
@example(answers=[bytes(5), bytes(261)], chunk=12)  # three bytes of a size that no other frame begins with
def test_answers_come_out_whole_however_the_bytes_arrive(answers, chunk):
    assembler = ResponseAssembler()
    assert feed(assembler, framed(answers), chunk) == answers
    assert not assembler.is_mid_response


def test_a_large_answer_is_received_into_the_buffer_it_is_handed_out_in():
    assembler = ResponseAssembler()
    size = 10 * RECEIVE_BYTES
    feed(assembler, struct.pack(">i", size) + b"abcd", 8)
    own = assembler.buffer().obj

    (answer,) = feed(assembler, bytes(size - 4), 1 << 30)

    assert answer.obj is own
    assert len(answer) == size
    assert answer[:4] == b"abcd"


def test_an_answer_keeps_its_bytes_when_the_next_ones_arrive():
    assembler = ResponseAssembler()
    (first,) = feed(assembler, framed([b"first"]), 100)
    feed(assembler, framed([b"other"]), 100)
    assert first == b"first"


@pytest.mark.parametrize(
    ("received", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
        (b"\xff\xff\xff\xff", "-1 bytes"),
        (b"\x00\x00\x00\x01?", "1 bytes"),
    ],
)
def test_what_is_no_answer_is_reported(received, words):
    with pytest.raises(BadResponse, match=words):
        feed(ResponseAssembler(), received, 100)


def test_a_large_buffer_is_received_into_again_only_when_nobody_looks_at_any_part_of_it():
    spares = SpareBuffers()
    first = spares.acquire(3_000_000)
    first[0] = 7
    part = first[100:200]
    del first

    second = spares.acquire(3_000_000)
    second[0] = 8
    del part
    third = spares.acquire(2_900_000)

    assert (second[0], third[0], len(third)) == (8, 7, 2_900_000)
    assert third.obj is not second.obj


def test_only_so_many_buffers_are_kept_and_none_that_is_huge():
    spares = SpareBuffers()
    held = [spares.acquire(1_000_000) for _ in range(2 * MOST_SPARES)]
    assert len({id(one.obj) for one in held}) == len(held)
    kept = {id(one.obj) for one in held[:MOST_SPARES]}
    del held

    again = [spares.acquire(1_000_000) for _ in range(MOST_SPARES)]
    assert {id(one.obj) for one in again} == kept
    huge = spares.acquire(MAX_SPARE_BYTES + 1)
    assert len(huge.obj) == MAX_SPARE_BYTES + 1
