"""The loops over single records: what they find, where, and that no bytes make them read out of bounds."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.records.kernels.layout import (
    BATCH_ROW_WIDTH,
    ROW_WIDTH,
    SENTENCES,
    SMALLEST_RECORD,
    Column,
    Problem,
)
from records.conftest import COMPILED, INTERPRETED, SOURCES, Kernels
from records.samples import a_batch, record_lists

SMALL = bytes([12, 0, 0, 0, 1, 1, 0])  # no key, no value, no headers


def check(
    kernel: Kernels, records: bytes, *, count: int = 1, last: int | None = None, **rules: Any
) -> tuple[int, ...]:
    last = count - 1 if last is None else last
    is_strict, requires_key = rules.get("is_strict", True), rules.get("requires_key", False)
    untimed_delta = rules.get("untimed_delta", -1)
    return kernel.check_records(records, 0, len(records), count, last, is_strict, requires_key, untimed_delta)


def record(*fields: bytes, length: int | None = None) -> bytes:
    """A record of raw fields after a one-byte length, which may lie."""
    body = b"".join(fields)
    return bytes([2 * (len(body) if length is None else length)]) + body


VARINT_OF_6_BYTES = b"\x80\x80\x80\x80\x80\x00"
VARINT_OF_33_BITS = b"\xff\xff\xff\xff\x1f"
VARINT_OF_11_BYTES = b"\x80" * 10 + b"\x00"
VARINT_OF_65_BITS = b"\xff" * 9 + b"\x02"

FAULTS = {
    "no record": (b"", Problem.TOO_FEW, 0),
    "length cut off": (b"\x80", Problem.RECORD_LENGTH, 0),
    "length overflows": (VARINT_OF_6_BYTES + SMALL, Problem.RECORD_LENGTH, 0),
    "length of 33 bits": (VARINT_OF_33_BITS + SMALL, Problem.RECORD_LENGTH, 0),
    "length negative": (b"\x01" + SMALL[1:], Problem.RECORD_LENGTH, 0),
    "length too small": (b"\x0a" + SMALL[1:], Problem.RECORD_LENGTH, 0),
    "length passes the end": (b"\x0e" + SMALL[1:], Problem.RECORD_LENGTH, 0),
    "timestamp of 65 bits": (
        record(b"\x00", VARINT_OF_65_BITS, b"\x00\x01\x01\x00"),
        Problem.TIMESTAMP_DELTA,
        2,
    ),
    "timestamp of 11 bytes": (
        record(b"\x00", VARINT_OF_11_BYTES, b"\x00\x01\x01\x00"),
        Problem.TIMESTAMP_DELTA,
        2,
    ),
    "offset of 33 bits": (record(b"\x00\x00", VARINT_OF_33_BITS, b"\x01\x01\x00"), Problem.OFFSET_DELTA, 3),
    "key passes the record": (record(b"\x00\x00\x00\x7e\x01\x00") + bytes(99), Problem.KEY, 4),
    "key length -2": (record(b"\x00\x00\x00\x03\x01\x00"), Problem.KEY, 4),
    "key length overflows": (record(b"\x00\x00\x00", VARINT_OF_6_BYTES, b"\x01\x00"), Problem.KEY, 4),
    "value passes the record": (record(b"\x00\x00\x00\x01\x7e\x00") + bytes(99), Problem.VALUE, 5),
    "value length -2": (record(b"\x00\x00\x00\x01\x03\x00"), Problem.VALUE, 5),
    "header count negative": (record(b"\x00\x00\x00\x01\x01\x01"), Problem.HEADER_COUNT, 6),
    "header count cut off": (record(b"\x00\x00\x00\x01\x01\x80") + bytes(9), Problem.HEADER_COUNT, 6),
    "more headers than bytes": (record(b"\x00\x00\x00\x01\x01\x04\x00\x01"), Problem.HEADER_KEY, 9),
    "header key null": (record(b"\x00\x00\x00\x01\x01\x02\x01\x01"), Problem.HEADER_KEY, 7),
    "header key passes the record": (
        record(b"\x00\x00\x00\x01\x01\x02\x7e\x01") + bytes(99),
        Problem.HEADER_KEY,
        7,
    ),
    "header value passes": (record(b"\x00\x00\x00\x01\x01\x02\x00\x7e") + bytes(99), Problem.HEADER_VALUE, 8),
    "header value -2": (record(b"\x00\x00\x00\x01\x01\x02\x00\x03"), Problem.HEADER_VALUE, 8),
    "fields end early": (record(b"\x00\x00\x00\x01\x01\x00\x00"), Problem.NOT_FILLED, 7),
    "bytes after the records": (SMALL + b"\x00", Problem.BYTES_LEFT, 7),
}


@pytest.mark.parametrize(("records", "problem", "position"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_reported_with_its_kind_and_place(kernel, records, problem, position):
    assert check(kernel, records)[:2] == (problem, position)
    assert check(kernel, records, is_strict=False)[:2] == (problem, position)
    table = memoryview(bytearray(8 * ROW_WIDTH)).cast("q")
    assert kernel.index_records(records, 0, len(records), 1, table)[:2] == (problem, position)
    assert kernel.read_records(records, 0, len(records), 1, 0, 0, False, [])[:2] == (problem, position)


def test_every_problem_has_a_sentence():
    assert set(SENTENCES) == set(Problem) - {Problem.NONE}


def test_the_index_of_the_faulty_record_is_reported(kernel):
    broken = SMALL.replace(b"\x0c\x00\x00\x00", b"\x0c\x00\x00\x02") + b"\x0c\x00\x00"

    assert check(kernel, SMALL + broken, count=3)[:3] == (Problem.RECORD_LENGTH, 14, 2)


def test_strict_offsets_are_0_1_2(kernel):
    second = SMALL[:3] + b"\x02" + SMALL[4:]
    fourth = SMALL[:3] + b"\x06" + SMALL[4:]

    assert check(kernel, SMALL + second, count=2)[0] == Problem.NONE
    assert check(kernel, SMALL + fourth, count=2)[:3] == (Problem.WRONG_OFFSET, 7, 1)
    assert check(kernel, second, count=1)[:3] == (Problem.WRONG_OFFSET, 0, 0)


def test_lenient_offsets_grow_within_the_batch(kernel):
    first, fourth = SMALL, SMALL[:3] + b"\x06" + SMALL[4:]

    def lenient(records: bytes, last: int) -> int:
        return check(kernel, records, count=2, last=last, is_strict=False)[0]

    assert lenient(first + fourth, 3) == Problem.NONE
    assert lenient(first + fourth, 9) == Problem.NONE
    assert lenient(first + fourth, 2) == Problem.WRONG_OFFSET
    assert lenient(fourth + first, 3) == Problem.WRONG_OFFSET
    assert lenient(first + first, 3) == Problem.WRONG_OFFSET


def test_a_batch_without_records_is_sound(kernel):
    assert check(kernel, b"", count=0, last=9, is_strict=False)[0] == Problem.NONE


def test_a_missing_key_is_found_where_one_is_required(kernel):
    with_key = record(b"\x00\x00\x00\x00\x01\x00")  # empty, but there

    assert check(kernel, with_key, requires_key=True)[0] == Problem.NONE
    assert check(kernel, SMALL, requires_key=True)[:3] == (Problem.NO_KEY, 0, 0)


def test_the_least_and_greatest_timestamp_leave_out_records_without_one(kernel):
    def at(index: int, delta: bytes) -> bytes:
        return record(b"\x00", delta, bytes([2 * index]), b"\x01\x01\x00")

    records = at(0, b"\x00") + at(1, b"\x14") + at(2, b"\x09")  # deltas 0, 10, -5

    assert check(kernel, records, count=3, untimed_delta=99)[3:] == (-5, 10)
    assert check(kernel, records, count=3, untimed_delta=-5)[3:] == (0, 10)
    assert check(kernel, at(0, b"\x09"), untimed_delta=-5)[3:] == (-5, -5)


def test_record_attributes_do_not_matter(kernel):
    assert check(kernel, SMALL[:1] + b"\xff" + SMALL[2:])[0] == Problem.NONE


def test_a_callers_mistake_is_raised_not_read(kernel):
    with pytest.raises(IndexError):
        kernel.check_records(SMALL, 0, 8, 1, 0, True, False, -1)
    with pytest.raises(IndexError):
        kernel.check_records(SMALL, -1, 7, 1, 0, True, False, -1)


def everything(kernel: Kernels, content: bytes, count: int) -> list[Any]:
    """Every answer that the reading kernels give about some bytes."""
    rows = min(count, len(content) // SMALLEST_RECORD)
    table = memoryview(bytearray((rows or 1) * ROW_WIDTH * 8)).cast("q")
    records: list[Any] = []
    scan = kernel.scan_batches(content, 0, len(content))
    return [
        check(kernel, content, count=count),
        check(kernel, content, count=count, last=30, is_strict=False, requires_key=True),
        kernel.index_records(content, 0, len(content), rows, table),
        table.tolist(),
        kernel.read_records(content, 0, len(content), count, 5, 6, False, records),
        repr(records),
        (scan.count, scan.stop, scan.position, scan.table[: scan.count * BATCH_ROW_WIDTH].tolist()),
    ]


@given(content=st.binary(max_size=200), count=st.integers(0, 20))
def test_both_twins_agree_on_any_bytes(content, count):
    assert everything(COMPILED, content, count) == everything(INTERPRETED, content, count)


@given(records=record_lists(), tail=st.binary(max_size=16), draws=st.data())
def test_checking_finds_what_indexing_does_though_it_takes_plain_records_quicker(records, tail, draws):
    encoded = COMPILED.encode_records(
        [r.key for r in records], [r.value for r in records], None, 0, None, [r.headers for r in records], 0
    )
    encoded[draws.draw(st.integers(0, len(encoded) - 1))] = draws.draw(st.integers(0, 255))
    content, count = bytes(encoded + tail), len(records)
    for kernel in (COMPILED, INTERPRETED):
        table = memoryview(bytearray(count * ROW_WIDTH * 8)).cast("q")
        problem, position, index = kernel.index_records(content, 0, len(content), count, table)
        deltas = [table[row * ROW_WIDTH + Column.OFFSET_DELTA] for row in range(index)]

        checked = check(kernel, content, count=count, last=2**31, is_strict=False)

        if all(last < delta <= 2**31 for last, delta in zip([-1, *deltas], deltas, strict=False)):
            assert checked[:3] == (problem, position, index)
        else:
            assert checked[0] == Problem.WRONG_OFFSET


@given(records=record_lists(), draws=st.data())
def test_both_twins_agree_on_damaged_records(records, draws):
    encoded = COMPILED.encode_records(
        [r.key for r in records], [r.value for r in records], None, 0, None, [r.headers for r in records], 0
    )
    for _ in range(draws.draw(st.integers(1, 3))):
        encoded[draws.draw(st.integers(0, len(encoded) - 1))] = draws.draw(st.integers(0, 255))

    for content in (encoded, a_batch(3) + encoded):
        answers = everything(COMPILED, bytes(content), len(records))
        assert answers == everything(INTERPRETED, bytes(content), len(records))


def test_running_interpreted_is_reported_once():
    source = str(SOURCES / "kernels" / "record_check.py")
    program = f"""
import importlib.util, warnings
warnings.simplefilter("always")
for _ in range(2):
    spec = importlib.util.spec_from_file_location("odradek.records.kernels.record_check", {source!r})
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
"""
    reported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert reported.stderr.count("RuntimeWarning: odradek runs interpreted") == 1
    assert "C compiler" in reported.stderr
