"""Building a batch and reading it back: any records, every codec, both ways of giving them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.records import builder
from odradek.records.batch import TimestampType, has_valid_crc, read_header
from odradek.records.builder import build_batch, build_batch_from_columns
from odradek.records.compression import Codec
from odradek.records.errors import BatchTooLarge, InvalidRecord
from odradek.records.record import Record, read_records
from records.samples import FEW, LIMIT, record_lists, some_records


@pytest.mark.parametrize("codec", list(Codec))
@FEW
@given(records=record_lists(gaps=True), base_offset=st.integers(0, 2**40))
def test_what_is_built_is_read(codec, records, base_offset):
    records = [Record(r.offset + base_offset, r.timestamp_ms, r.key, r.value, r.headers) for r in records]

    batch = build_batch(records, base_offset=base_offset, codec=codec)

    assert read_records(batch, max_bytes=LIMIT) == records
    header = read_header(batch)
    assert has_valid_crc(batch, 0, header)
    assert (header.codec, header.record_count) == (codec, len(records))
    assert (header.base_offset, header.last_offset) == (base_offset, records[-1].offset)
    assert header.max_timestamp_ms == max(r.timestamp_ms for r in records)
    assert header.size_in_bytes == len(batch)


@pytest.mark.parametrize("codec", list(Codec))
@FEW
@given(records=record_lists())
def test_columns_give_the_same_batch_as_records(codec, records):
    from_columns = build_batch_from_columns(
        [r.key for r in records],
        [r.value for r in records],
        [r.timestamp_ms for r in records],
        [r.headers for r in records],
        codec=codec,
        producer_id=5,
        producer_epoch=6,
        base_sequence=7,
        is_transactional=True,
    )

    assert from_columns == build_batch(
        records, codec=codec, producer_id=5, producer_epoch=6, base_sequence=7, is_transactional=True
    )


def test_producer_fields_are_kept():
    header = read_header(
        build_batch(
            some_records(),
            producer_id=2**40,
            producer_epoch=3,
            base_sequence=2**31 - 1,
            partition_leader_epoch=9,
        )
    )

    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (2**40, 3, 2**31 - 1)
    assert header.last_sequence == 1
    assert header.partition_leader_epoch == 9


def test_a_cleaned_batch_keeps_its_range_and_its_time():
    batch = build_batch(
        [Record(103, 50, b"k", b"v")],
        base_offset=100,
        last_offset_delta=9,
        max_timestamp_ms=77,
        codec=Codec.GZIP,
    )
    header = read_header(batch)

    assert (header.base_offset, header.last_offset, header.record_count) == (100, 109, 1)
    assert header.max_timestamp_ms == 77
    assert read_records(batch, max_bytes=LIMIT) == [Record(103, 50, b"k", b"v")]


def test_an_emptied_batch_is_only_a_header_without_codec():
    batch = build_batch(
        [],
        base_offset=100,
        last_offset_delta=9,
        codec=Codec.ZSTD,
        producer_id=7,
        producer_epoch=0,
        base_sequence=4,
    )

    assert len(batch) == 61
    assert read_header(batch).codec is Codec.NONE
    assert read_header(batch).next_offset == 110
    assert read_records(batch, max_bytes=LIMIT) == []


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp():
    records = [Record(0, 1000, b"k"), Record(1, 2000, b"k")]
    batch = build_batch(records, delete_horizon_ms=5000)

    assert read_header(batch).base_timestamp_ms == 5000
    assert read_header(batch).has_delete_horizon
    assert read_records(batch, max_bytes=LIMIT) == records


def test_log_append_time_is_the_max_timestamp_for_all():
    batch = build_batch(some_records(), timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp_ms=123)

    assert [r.timestamp_ms for r in read_records(batch, max_bytes=LIMIT)] == [123, 123, 123]


@pytest.mark.parametrize("offsets", [(0, 0), (1, 0), (5, 4), (-1, 0)])
def test_offsets_must_grow_from_the_base(offsets):
    with pytest.raises(InvalidRecord):
        build_batch([Record(offset, 0) for offset in offsets])


def test_offsets_must_fit_the_batch():
    with pytest.raises(InvalidRecord):
        build_batch([Record(0, 0), Record(2**31, 0)])
    with pytest.raises(InvalidRecord):
        build_batch([Record(0, 0), Record(5, 0)], last_offset_delta=4)


def test_times_far_apart_wrap_and_come_back():
    records = [Record(0, -1), Record(1, 2**63 - 1), Record(2, -(2**63))]

    assert read_records(build_batch(records), max_bytes=LIMIT) == records


def test_a_producers_batch_needs_a_record():
    with pytest.raises(InvalidRecord):
        build_batch_from_columns(None, [], [])


def test_a_batch_that_its_length_cannot_count_is_refused(monkeypatch):
    monkeypatch.setattr(builder, "MAX_BATCH_BYTES", 100)
    with pytest.raises(BatchTooLarge) as caught:
        build_batch([Record(0, 0, value=bytes(100))])
    assert caught.value.limit == 100
