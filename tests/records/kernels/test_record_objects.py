"""Records as Python objects: what a consumer sees of the bytes."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from odradek.records.kernels.record_objects import Record

SMALL = bytes([12, 0, 0, 0, 1, 1, 0])  # no key, no value, no headers


def test_offsets_and_times_wrap_like_javas(kernel):
    records: list[Any] = []

    kernel.read_records(b"\x0c\x00\x02\x02\x01\x01\x00", 0, 7, 1, 2**63 - 1, 2**63 - 1, False, records)

    assert (records[0].offset, records[0].timestamp_ms) == (-(2**63), -(2**63))


def test_a_header_key_that_is_not_utf8_is_shown_with_replacements(kernel):
    records: list[Any] = []
    raw = b"\x12\x00\x00\x00\x01\x01\x02\x02\xff\x01"

    kernel.read_records(raw, 0, len(raw), 1, 0, 0, False, records)

    assert records[0].headers == (("\ufffd", None),)


def test_records_are_equal_by_content(kernel):
    made = kernel.Record(1, 2, b"k", None, (("h", b"x"),))

    assert made == kernel.Record(1, 2, b"k", None, (("h", b"x"),))
    assert made != kernel.Record(1, 2, b"k", b"", (("h", b"x"),))
    assert hash(made) == hash(kernel.Record(1, 2, b"k", None, (("h", b"x"),)))
    assert repr(made) == "Record(offset=1, timestamp_ms=2, key=b'k', value=None, headers=(('h', b'x'),))"


def test_compiled_records_do_not_burden_the_garbage_collector():
    assert not gc.is_tracked(Record(0, 0))


def test_a_read_out_of_bounds_is_raised_not_done(kernel):
    with pytest.raises(IndexError):
        kernel.read_records(SMALL, 5, 3, 1, 0, 0, False, [])
