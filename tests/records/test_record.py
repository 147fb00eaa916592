"""The records of one batch, read or indexed: faults placed where the caller can find them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.error_codes import ErrorCode
from odradek.records.compression import Codec
from odradek.records.errors import (
    CorruptBatch,
    DecompressedTooLarge,
    InvalidRecord,
    RecordsError,
    TruncatedBatch,
    UnsupportedCodec,
)
from odradek.records.kernels.layout import Column
from odradek.records.record import Record, index_batch, read_records
from records.samples import FEW, LIMIT, a_batch, batch_of, patched, some_records

COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_in_the_middle_of_a_log_is_read_and_indexed(codec):
    log = a_batch(2) + a_batch(9, codec) + a_batch(1)

    assert read_records(log, len(a_batch(2)), max_bytes=LIMIT) == some_records(9)
    index = index_batch(memoryview(log), len(a_batch(2)), max_bytes=LIMIT)
    positions, lengths = index.column(Column.VALUE_POSITION), index.column(Column.VALUE_LENGTH)
    values = [
        None if length < 0 else bytes(index.buffer[at : at + length])
        for at, length in zip(positions, lengths, strict=True)
    ]
    assert values == [record.value for record in some_records(9)]


def test_a_fault_is_placed_in_the_callers_buffer():
    before = a_batch(2)
    broken = before + batch_of(b"\x0c\x00\x00\x00\x7e\x01\x00")

    for read in (read_records, index_batch):
        with pytest.raises(InvalidRecord, match="record 0 of the batch: the key's length") as caught:
            read(broken, len(before), max_bytes=LIMIT)
        assert caught.value.position == len(before) + 61 + 4
        assert caught.value.batch_index == 0
        assert caught.value.error_code is ErrorCode.INVALID_RECORD


def test_a_fault_in_compressed_records_is_placed_at_the_batch():
    before = a_batch(2)
    broken = before + batch_of(b"\x0c\x00\x00\x00\x7e\x01\x00", codec=Codec.GZIP)

    with pytest.raises(InvalidRecord, match="byte 4 of the decompressed records") as caught:
        read_records(broken, len(before), max_bytes=LIMIT)
    assert caught.value.position == len(before)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_what_does_not_decompress_is_corrupt_at_the_batch(codec):
    garbage = batch_of(b"\xfe\xfd garbage", attributes=codec)

    with pytest.raises(CorruptBatch) as caught:
        read_records(a_batch() + garbage, len(a_batch()), max_bytes=LIMIT)
    assert caught.value.position == len(a_batch())


@pytest.mark.parametrize("codec", COMPRESSED)
def test_decompression_has_the_callers_limit(codec):
    with pytest.raises(DecompressedTooLarge) as caught:
        read_records(a_batch(50, codec), max_bytes=1000)
    assert (caught.value.limit, caught.value.position) == (1000, 0)


def test_an_undefined_codec_is_reported_with_its_place():
    with pytest.raises(UnsupportedCodec) as caught:
        read_records(a_batch() + patched(a_batch(), 21, ">h", 6), len(a_batch()), max_bytes=LIMIT)
    assert caught.value.position == len(a_batch())


@pytest.mark.parametrize("count", [2**31 - 1, 100, 4, -1, -(2**31)])
def test_a_count_that_lies_makes_no_large_table(count):
    with pytest.raises(InvalidRecord):
        index_batch(patched(a_batch(), 57, ">i", count), max_bytes=LIMIT)


@pytest.mark.parametrize("count", [2**31 - 1, 4, 2])
def test_a_count_that_lies_gives_no_partial_result(count):
    with pytest.raises(InvalidRecord):
        read_records(patched(a_batch(), 57, ">i", count), max_bytes=LIMIT)


@pytest.mark.parametrize("codec", list(Codec))
@FEW
@given(draws=st.data())
def test_a_cut_anywhere_is_a_typed_error(codec, draws):
    batch = a_batch(5, codec)
    cut = draws.draw(st.integers(0, len(batch) - 1))

    for read in (read_records, index_batch):
        with pytest.raises(TruncatedBatch):
            read(batch[:cut], max_bytes=LIMIT)


@pytest.mark.parametrize("codec", list(Codec))
@FEW
@given(draws=st.data())
def test_a_flip_anywhere_is_a_typed_error_or_whole_records(codec, draws):
    batch = a_batch(5, codec)
    batch[draws.draw(st.integers(0, len(batch) - 1))] ^= draws.draw(st.integers(1, 255))
    try:
        records = read_records(batch, max_bytes=LIMIT)
    except RecordsError:
        return
    assert all(isinstance(record, Record) for record in records)
