"""Records from lists of bytes: the bytes themselves, and that nothing wrong is written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.records.kernels.layout import Problem
from records.conftest import COMPILED, INTERPRETED, Kernels
from records.samples import record_lists


def columns_of(records: list[Any]) -> tuple[Any, ...]:
    return (
        [r.key for r in records],
        [r.value for r in records],
        [r.timestamp_ms for r in records],
        0,
        [r.offset for r in records],
        [r.headers for r in records],
    )


def read(kernel: Kernels, encoded: bytes | bytearray, count: int) -> list[tuple[Any, ...]]:
    records: list[Any] = []
    assert kernel.read_records(encoded, 0, len(encoded), count, 0, 0, False, records)[0] == Problem.NONE
    return [(r.offset, r.timestamp_ms, r.key, r.value, r.headers) for r in records]


def test_a_record_has_kafkas_bytes(kernel):
    encoded = kernel.encode_records([b"key"], [b"value"], [97], 100, [300], [[("h", None), ("é", b"x")]], 2)

    fields = b"\x00\x05\xd8\x04\x06key\x0avalue\x04\x02h\x01\x04\xc3\xa9\x02x"
    assert encoded[2:] == bytes([2 * len(fields)]) + fields


def test_columns_may_be_left_out(kernel):
    encoded = kernel.encode_records(None, [b"a", None], None, 0, None, None, 0)

    assert read(kernel, encoded, 2) == [(0, 0, None, b"a", ()), (1, 0, None, None, ())]


@given(records=record_lists(gaps=True))
def test_what_is_written_is_read_and_both_twins_write_the_same(records):
    encoded = COMPILED.encode_records(*columns_of(records), 0)

    expected = [(r.offset, r.timestamp_ms, r.key, r.value, r.headers) for r in records]
    assert read(COMPILED, encoded, len(records)) == expected
    assert INTERPRETED.encode_records(*columns_of(records), 0) == encoded


@given(number=st.integers(-(2**63), 2**63 - 1))
def test_varints_are_zigzag_and_have_the_size_they_say(number):
    for kernel in (COMPILED, INTERPRETED):
        out = bytearray(10)
        size = kernel.put_varint(out, 0, number)
        assert size == kernel.size_of_varint(number)
        raw = sum((byte & 0x7F) << (7 * i) for i, byte in enumerate(out[:size]))
        assert (raw >> 1) ^ -(raw & 1) == number
        assert [byte >= 0x80 for byte in out[:size]] == [True] * (size - 1) + [False]


def test_columns_of_different_lengths_are_refused(kernel):
    with pytest.raises(ValueError, match="different lengths"):
        kernel.encode_records([b"k"], [b"v", b"v"], None, 0, None, None, 0)


@pytest.mark.parametrize("wrong", ["text", 5, bytearray(b"x")])
def test_keys_and_values_are_bytes_or_none(wrong):
    with pytest.raises(TypeError):
        COMPILED.encode_records([wrong], [b"v"], None, 0, None, None, 0)
    with pytest.raises(TypeError):
        COMPILED.encode_records(None, [wrong], None, 0, None, None, 0)
