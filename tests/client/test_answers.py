from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.client.answers import RECEIVE_BYTES, AnswerAssembler, BadAnswer


def framed(answers: list[bytes]) -> bytes:
    return b"".join(struct.pack(">i", len(answer)) + answer for answer in answers)


def feed(assembler: AnswerAssembler, received: bytes, chunk: int) -> list[memoryview]:
    answers: list[memoryview] = []
    while received:
        room = assembler.room()
        count = min(len(room), chunk, len(received))
        room[:count] = received[:count]
        answers += assembler.filled(count)
        received = received[count:]
    return answers


@given(
    answers=st.lists(st.binary(min_size=4, max_size=300), max_size=20),
    chunk=st.integers(1, 400),
)
@example(answers=[bytes(5), bytes(261)], chunk=12)  # three bytes of a size that no other frame begins with
def test_answers_come_out_whole_however_the_bytes_arrive(answers, chunk):
    assembler = AnswerAssembler()
    assert feed(assembler, framed(answers), chunk) == answers
    assert not assembler.is_mid_answer


def test_a_large_answer_is_received_into_the_buffer_it_is_handed_out_in():
    assembler = AnswerAssembler()
    size = 10 * RECEIVE_BYTES
    feed(assembler, struct.pack(">i", size) + b"abcd", 8)
    own = assembler.room().obj

    (answer,) = feed(assembler, bytes(size - 4), 1 << 30)

    assert answer.obj is own
    assert len(answer) == size
    assert answer[:4] == b"abcd"


def test_an_answer_keeps_its_bytes_when_the_next_ones_arrive():
    assembler = AnswerAssembler()
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
def test_what_is_no_answer_is_told(received, words):
    with pytest.raises(BadAnswer, match=words):
        feed(AnswerAssembler(), received, 100)
