"""What is let into a log: each rule of the broker, each damage, with Kafka's error code."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.error_codes import ErrorCode
from odradek.records.batch import BatchHeader, read_header
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.errors import (
    BatchTooLarge,
    CorruptBatch,
    DecompressedTooLarge,
    InvalidRecord,
    RecordsError,
    TruncatedBatch,
    UnsupportedCodec,
    UnsupportedMagic,
)
from odradek.records.fast_validation import KEEP_CODEC, accept
from odradek.records.kernels.encoding import encode_records
from odradek.records.record import Record
from odradek.records.validate import validate_for_log, validate_for_produce
from records.conftest import interpreted
from records.samples import FEW, LIMIT, a_batch, batch_of, patched, record_lists, some_records

ONE_RECORD = bytes(encode_records([b"k"], [b"v"], None, 0, None, None, 0))


class Accepted(NamedTuple):
    """What an append learns from the fast validation."""

    attributes: int
    last_offset_delta: int
    max_timestamp_ms: int
    producer_id: int


def produced(batch: bytes | bytearray, **rules: object) -> BatchHeader:
    """Validated; and what the fast validation accepts is always what the detailed one accepts."""
    settings = {"max_message_bytes": LIMIT, "max_decompressed_bytes": LIMIT} | rules
    accepted_fast = accepted(batch, **settings)
    try:
        header = validate_for_produce(batch, **settings)  # type: ignore[arg-type]
    except RecordsError:
        assert accepted_fast is None
        raise
    assert accepted_fast in (None, reported_by(header))
    return header


def reported_by(header: BatchHeader) -> Accepted:
    return Accepted(header.attributes, header.last_offset_delta, header.max_timestamp_ms, header.producer_id)


INTERPRETED = interpreted("fast_validation")


def accepted(batch: bytes | bytearray, **rules: object) -> Accepted | None:
    settings = {
        "max_message_bytes": LIMIT,
        "max_decompressed_bytes": LIMIT,
        "requires_key": False,
        "timestamp_range_ms": (-(2**61), 2**61),
    } | rules
    earliest_ms, latest_ms = settings.pop("timestamp_range_ms")  # type: ignore[misc]
    found, of_twin = (
        check(
            memoryview(bytearray(batch)),
            earliest_ms=earliest_ms,
            latest_ms=latest_ms,
            checks_times=True,
            codec=KEEP_CODEC,
            **settings,
        )
        for check in (accept, INTERPRETED.accept)
    )
    fields = [
        None if one is None else Accepted(*(getattr(one, name) for name in Accepted._fields))
        for one in (found, of_twin)
    ]
    assert fields[0] == fields[1]
    return fields[0]


@pytest.mark.parametrize("codec", list(Codec))
def test_valid_batches_need_no_detailed_validation(codec):
    batch = build_batch(some_records(), codec=codec, producer_id=7, producer_epoch=0, base_sequence=3)

    assert accepted(batch) == reported_by(read_header(batch))


def logged(batch: bytes | bytearray) -> BatchHeader:
    return validate_for_log(batch, max_decompressed_bytes=LIMIT)


@pytest.mark.parametrize("codec", list(Codec))
@FEW
@given(records=record_lists())
def test_a_good_batch_passes_and_its_header_comes_back(codec, records):
    batch = build_batch(records, codec=codec)

    assert produced(batch) == logged(batch) == read_header(batch)


# name: (batch, error, code on produce, is it also refused in a log)
REFUSED: dict[str, tuple[bytearray, type[RecordsError], ErrorCode, bool]] = {
    "wrong crc": (a_batch()[:-1] + b"?", CorruptBatch, ErrorCode.CORRUPT_MESSAGE, True),
    "truncated": (a_batch()[:-1], TruncatedBatch, ErrorCode.INVALID_RECORD, True),
    "nothing": (bytearray(), TruncatedBatch, ErrorCode.INVALID_RECORD, True),
    "length too long": (patched(a_batch(), 8, ">i", 10**6), TruncatedBatch, ErrorCode.INVALID_RECORD, True),
    "length too short": (patched(a_batch(), 8, ">i", 20), CorruptBatch, ErrorCode.CORRUPT_MESSAGE, True),
    "magic 0": (patched(a_batch(), 16, "b", 0), UnsupportedMagic, ErrorCode.INVALID_RECORD, True),
    "magic 1": (patched(a_batch(), 16, "b", 1), UnsupportedMagic, ErrorCode.INVALID_RECORD, True),
    "magic 3": (patched(a_batch(), 16, "b", 3), UnsupportedMagic, ErrorCode.CORRUPT_MESSAGE, True),
    "base offset": (patched(a_batch(), 0, ">q", 5), InvalidRecord, ErrorCode.INVALID_RECORD, False),
    "count too small": (patched(a_batch(), 57, ">i", 2), InvalidRecord, ErrorCode.INVALID_RECORD, True),
    "count too large": (patched(a_batch(), 57, ">i", 4), InvalidRecord, ErrorCode.INVALID_RECORD, True),
    "count negative": (patched(a_batch(), 57, ">i", -1), InvalidRecord, ErrorCode.INVALID_RECORD, True),
    "no records": (build_batch([]), InvalidRecord, ErrorCode.INVALID_RECORD, False),
    "last offset too large": (
        patched(a_batch(), 23, ">i", 5),
        InvalidRecord,
        ErrorCode.INVALID_RECORD,
        False,
    ),
    "last offset negative": (patched(a_batch(), 23, ">i", -1), InvalidRecord, ErrorCode.INVALID_RECORD, True),
    "control": (patched(a_batch(), 21, ">h", 0x20), InvalidRecord, ErrorCode.INVALID_RECORD, False),
    "no sequence": (patched(a_batch(), 43, ">q", 7), InvalidRecord, ErrorCode.INVALID_RECORD, False),
    "codec 5": (
        patched(a_batch(), 21, ">h", 5),
        UnsupportedCodec,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        True,
    ),
    "no gzip": (batch_of(b"?", attributes=1), CorruptBatch, ErrorCode.INVALID_RECORD, True),
    "no snappy": (batch_of(b"\x05?", attributes=2), CorruptBatch, ErrorCode.INVALID_RECORD, True),
    "no lz4": (batch_of(b"?", attributes=3), CorruptBatch, ErrorCode.INVALID_RECORD, True),
    "no zstd": (batch_of(b"?", attributes=4), CorruptBatch, ErrorCode.INVALID_RECORD, True),
    "bytes after": (batch_of(ONE_RECORD + b"\x00"), InvalidRecord, ErrorCode.INVALID_RECORD, True),
    "bytes after, packed": (
        batch_of(ONE_RECORD + b"\x00", codec=Codec.ZSTD),
        InvalidRecord,
        ErrorCode.INVALID_RECORD,
        True,
    ),
    "record length": (batch_of(b"\x7f" + ONE_RECORD[1:]), InvalidRecord, ErrorCode.INVALID_RECORD, True),
    "varint overflow": (batch_of(b"\xff" * 6 + ONE_RECORD), InvalidRecord, ErrorCode.INVALID_RECORD, True),
    "gap": (
        build_batch([Record(0, 0), Record(2, 0)], last_offset_delta=2),
        InvalidRecord,
        ErrorCode.INVALID_RECORD,
        False,
    ),
}


@pytest.mark.parametrize(("batch", "error", "error_code", "in_log"), REFUSED.values(), ids=REFUSED.keys())
def test_a_faulty_batch_is_refused_with_kafkas_code(batch, error, error_code, in_log):
    with pytest.raises(error) as caught:
        produced(batch)
    assert caught.value.error_code is error_code
    assert caught.value.position >= 0
    if in_log:
        with pytest.raises(RecordsError):
            logged(batch)
    else:
        logged(batch)


def test_a_batch_over_the_limit_is_too_large():
    with pytest.raises(BatchTooLarge) as caught:
        produced(a_batch(), max_message_bytes=len(a_batch()) - 1)
    assert caught.value.error_code is ErrorCode.MESSAGE_TOO_LARGE
    assert (caught.value.size_in_bytes, caught.value.limit) == (len(a_batch()), len(a_batch()) - 1)
    produced(a_batch(), max_message_bytes=len(a_batch()))


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_a_compression_bomb_is_refused(codec):
    bomb = build_batch([Record(0, 0, b"k", bytes(20_000_000))], codec=codec)
    for validate in (produced, logged):
        with pytest.raises(DecompressedTooLarge) as caught:
            validate(bomb)
        assert caught.value.limit == LIMIT
    with pytest.raises(DecompressedTooLarge) as caught:
        produced(bomb)
    assert caught.value.error_code is ErrorCode.MESSAGE_TOO_LARGE, "the client may split it"


def test_a_missing_key_is_refused_where_one_is_required():
    keyed = build_batch([Record(0, 0, b"a"), Record(1, 0, b"")])
    produced(keyed, requires_key=True)

    with pytest.raises(InvalidRecord, match="key") as caught:
        produced(build_batch([Record(0, 0, b"a"), Record(1, 0, None)]), requires_key=True)
    assert caught.value.batch_index == 1


def test_timestamps_outside_the_range_are_refused_whatever_the_header_says():
    batch = build_batch([Record(0, 1000), Record(1, 500), Record(2, -1), Record(3, 2000)])
    lying = patched(batch, 35, ">q", 1000)  # max timestamp

    for good in (batch, lying):
        produced(good, timestamp_range_ms=(500, 2000))
        for bad_range, index in (((501, 2000), 1), ((500, 1999), 3)):
            with pytest.raises(InvalidRecord) as caught:
                produced(good, timestamp_range_ms=bad_range)
            assert caught.value.error_code is ErrorCode.INVALID_TIMESTAMP
            assert caught.value.batch_index == index


def test_records_without_timestamp_are_in_any_range():
    assert produced(build_batch([Record(0, -1)]), timestamp_range_ms=(500, 2000)).record_count == 1


def test_a_cleaned_batch_is_sound_in_a_log():
    gap = build_batch([Record(107, 0)], base_offset=100, last_offset_delta=20, codec=Codec.LZ4)
    empty = build_batch([], base_offset=100, last_offset_delta=20)
    horizon = build_batch([Record(100, 0)], base_offset=100, delete_horizon_ms=5)
    assert [logged(batch).record_count for batch in (gap, empty, horizon)] == [1, 0, 1]


def test_a_log_has_no_negative_offsets():
    with pytest.raises(CorruptBatch):
        logged(patched(a_batch(), 0, ">q", -1))


@pytest.mark.parametrize("codec", list(Codec))
@FEW
@given(draws=st.data())
def test_a_cut_anywhere_is_a_typed_error(codec, draws):
    batch = a_batch(5, codec)
    cut = draws.draw(st.integers(0, len(batch) - 1))
    for validate in (produced, logged):
        with pytest.raises(TruncatedBatch):
            validate(batch[:cut])


@pytest.mark.parametrize("codec", list(Codec))
@FEW
@given(draws=st.data())
def test_a_flip_anywhere_is_refused_unless_it_is_the_brokers_to_stamp(codec, draws):
    batch = a_batch(5, codec)
    position = draws.draw(st.integers(0, len(batch) - 1))
    batch[position] ^= draws.draw(st.integers(1, 255))

    if 12 <= position < 16:  # the leader epoch
        produced(batch)
        logged(batch)
    else:
        with pytest.raises(RecordsError):
            produced(batch)
    if position >= 16 or 8 <= position < 12:
        with pytest.raises(RecordsError):
            logged(batch)


@given(content=st.binary(max_size=300))
def test_any_bytes_are_refused_with_a_typed_error(content):
    for validate in (produced, logged):
        with pytest.raises(RecordsError):
            validate(content)


@given(draws=st.data(), records=record_lists())
def test_damaged_records_under_a_right_crc_are_accepted_whole_or_refused(draws, records):
    batch = build_batch(records)
    position = draws.draw(st.integers(61, len(batch) - 1))
    damaged = patched(batch, position, "B", draws.draw(st.integers(0, 255)))
    try:
        header = produced(damaged)
    except InvalidRecord as error:
        found = error.position
    else:
        found = header.record_count
        assert found == len(records)
    assert found >= 0


def test_the_place_of_a_batch_in_a_buffer_is_reported():
    log = a_batch() + patched(a_batch(), 57, ">i", 2)
    with pytest.raises(InvalidRecord) as caught:
        validate_for_produce(log, len(a_batch()), max_message_bytes=LIMIT, max_decompressed_bytes=LIMIT)
    assert caught.value.position == len(a_batch())
    assert validate_for_log(log, max_decompressed_bytes=LIMIT).record_count == len(some_records())
