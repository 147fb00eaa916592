"""The batch header: every field where Kafka puts it, stamps in place, damage reported."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.error_codes import ErrorCode
from odradek.records.batch import (
    HEADER_SIZE,
    NO_SEQUENCE,
    BatchHeader,
    TimestampType,
    has_valid_crc,
    iterate_headers,
    read_header,
    stamp,
    stamp_log_append_time,
)
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.errors import (
    CorruptBatch,
    RecordsError,
    TruncatedBatch,
    UnsupportedCodec,
    UnsupportedMagic,
)
from odradek.records.record import Record, read_records
from records.samples import LIMIT, a_batch, patched, some_records

FIELDS = BatchHeader(
    base_offset=0x0102030405060708,
    batch_length=55,
    partition_leader_epoch=0x11121314,
    magic=2,
    crc=0xA1A2A3A4,
    attributes=0x0004,
    last_offset_delta=0x21222324,
    base_timestamp_ms=0x3132333435363738,
    max_timestamp_ms=0x4142434445464748,
    producer_id=0x5152535455565758,
    producer_epoch=0x6162,
    base_sequence=0x71727374,
    record_count=0x01020304,
)
BYTES = bytes.fromhex(
    "0102030405060708 00000037 11121314 02 A1A2A3A4 0004 21222324 3132333435363738 4142434445464748"
    "5152535455565758 6162 71727374 01020304"
)


def test_each_field_is_where_kafka_puts_it():
    assert read_header(BYTES) == FIELDS
    assert read_header(b"before" + BYTES, 6) == FIELDS
    assert FIELDS.size_in_bytes == 67
    assert FIELDS.last_offset == FIELDS.base_offset + 0x21222324
    assert FIELDS.next_offset == FIELDS.last_offset + 1
    assert FIELDS.codec is Codec.ZSTD


def test_attributes_say_codec_time_and_kind():
    batch = build_batch(
        some_records(),
        codec=Codec.LZ4,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        producer_id=7,
        producer_epoch=1,
        base_sequence=5,
        is_transactional=True,
        is_control=True,
        delete_horizon_ms=99,
    )
    header = read_header(batch)

    assert header.codec is Codec.LZ4
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.is_transactional
    assert header.is_control
    assert header.has_delete_horizon
    assert header.has_producer_id
    assert header.base_timestamp_ms == 99
    plain = read_header(a_batch())
    assert not plain.is_transactional
    assert not plain.is_control
    assert not plain.has_delete_horizon
    assert not plain.has_producer_id
    assert plain.timestamp_type is TimestampType.CREATE_TIME


@pytest.mark.parametrize(
    ("base_sequence", "delta", "last"),
    [
        (0, 2, 2),
        (2**31 - 1, 0, 2**31 - 1),
        (2**31 - 1, 1, 0),
        (2**31 - 2, 3, 1),
        (NO_SEQUENCE, 2, NO_SEQUENCE),
    ],
)
def test_sequences_wrap_to_0(base_sequence, delta, last):
    assert FIELDS._replace(base_sequence=base_sequence, last_offset_delta=delta).last_sequence == last


@pytest.mark.parametrize("number", [5, 6, 7])
def test_an_undefined_codec_is_refused(number):
    with pytest.raises(UnsupportedCodec) as caught:
        _ = FIELDS._replace(attributes=number).codec
    assert caught.value.error_code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("magic", [0, 1, 3, -1])
def test_other_magics_are_recognised_and_refused_even_in_a_short_buffer(magic):
    batch = a_batch()
    batch[16] = magic & 0xFF
    for size in (17, 40, len(batch)):
        with pytest.raises(UnsupportedMagic) as caught:
            read_header(batch[:size])
        assert (caught.value.magic, caught.value.position) == (magic, 0)
        assert caught.value.error_code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_a_short_header_is_truncated():
    batch = a_batch()
    for size in range(HEADER_SIZE):
        with pytest.raises(TruncatedBatch) as caught:
            read_header(batch[:size])
        assert caught.value.position == 0


@pytest.mark.parametrize("length", [48, 0, -1, -(2**31)])
def test_a_length_below_the_header_is_corrupt(length):
    with pytest.raises(CorruptBatch, match="batch length"):
        read_header(patched(a_batch(), 8, ">i", length))


def test_batches_are_walked_to_the_end():
    log = a_batch(1) + a_batch(5) + a_batch(2)

    found = list(iterate_headers(log))

    assert [header.record_count for _, header in found] == [1, 5, 2]
    assert [position for position, _ in found] == [0, len(a_batch(1)), len(a_batch(1) + a_batch(5))]
    assert list(iterate_headers(log, start=found[1][0], end=found[2][0])) == [found[1]]
    assert list(iterate_headers(b"")) == []


@given(cut=st.integers(0, len(a_batch()) - 1))
def test_a_cut_batch_is_truncated_after_the_whole_ones(cut):
    whole = a_batch()
    walk = iterate_headers(whole + whole[:cut])

    assert next(walk)[0] == 0
    if cut == 0:
        assert list(walk) == []
    else:
        with pytest.raises(TruncatedBatch) as caught:
            next(walk)
        assert caught.value.position == len(whole)


def test_stamping_offset_and_epoch_keeps_the_crc():
    log = a_batch() + a_batch()
    second = len(log) // 2
    stamp(log, second, 1234567890123, 17)

    header = read_header(log, second)
    assert (header.base_offset, header.partition_leader_epoch) == (1234567890123, 17)
    assert has_valid_crc(log, second, header)
    assert read_header(log, 0) == read_header(a_batch())


@pytest.mark.parametrize("codec", list(Codec))
def test_stamping_log_append_time_renews_the_crc_and_gives_every_record_that_time(codec):
    batch = a_batch(5, codec)
    stamp_log_append_time(memoryview(batch), 0, 1_800_000_000_000)

    header = read_header(batch)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.codec is codec
    assert has_valid_crc(batch, 0, header)
    assert {record.timestamp_ms for record in read_records(batch, max_bytes=LIMIT)} == {1_800_000_000_000}


@given(draws=st.data())
def test_a_flipped_byte_breaks_the_crc_or_lies_before_it(draws):
    batch = a_batch()
    position = draws.draw(st.integers(0, len(batch) - 1))
    batch[position] ^= draws.draw(st.integers(1, 255))

    if position < 8 or 12 <= position < 16:  # base offset and leader epoch: the broker's to stamp
        assert has_valid_crc(batch, 0, read_header(batch))
    else:
        with suppress(RecordsError):
            assert not all(has_valid_crc(batch, at, header) for at, header in iterate_headers(batch))


def test_a_record_keeps_its_place_in_the_stamped_log():
    batch = build_batch([Record(0, 5, b"k"), Record(1, 6, b"k")])
    stamp(batch, 0, 40, 3)

    assert [record.offset for record in read_records(batch, max_bytes=LIMIT)] == [40, 41]
