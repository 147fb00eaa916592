"""The fast validation of a producer's batch: what it returns for a valid one, and that it refuses damage."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.records import fast_validation
from odradek.records.batch import HEADER_SIZE, read_header
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.fast_validation import ENDLESS_MS, KEEP_CODEC, ValidBatch
from odradek.records.record import Record
from records.conftest import interpreted
from records.samples import FEW, LIMIT, a_batch, some_records

WAYS = {"compiled": fast_validation, "interpreted": interpreted("fast_validation")}
TIME_MS = 1_700_000_000_000


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> ModuleType:
    return WAYS[request.param]


def accept(way: ModuleType, batch: bytes | bytearray, **rules: object) -> ValidBatch | None:
    settings = {
        "max_message_bytes": LIMIT,
        "max_decompressed_bytes": LIMIT,
        "requires_key": False,
        "checks_times": True,
        "earliest_ms": -ENDLESS_MS,
        "latest_ms": ENDLESS_MS,
        "codec": KEEP_CODEC,
    }
    found: ValidBatch | None = way.accept(memoryview(bytearray(batch)), **(settings | rules))
    return found


def a_record_at(timestamp_ms: int, key: bytes | None = b"k") -> Record:
    return Record(0, timestamp_ms, key, b"v", ())


@pytest.mark.parametrize("codec", list(Codec))
def test_a_valid_batch_is_described_by_its_header(way: ModuleType, codec: Codec) -> None:
    batch = build_batch(some_records(5), codec=codec, producer_id=7, producer_epoch=0, base_sequence=3)
    header = read_header(batch)

    found = accept(way, batch)

    assert found is not None
    assert (found.attributes, found.last_offset_delta, found.producer_id) == (int(codec), 4, 7)
    assert found.max_timestamp_ms == found.greatest_ms == header.max_timestamp_ms
    assert found.plain is None, "the log stores the batch as it is"


@pytest.mark.parametrize("codec", list(Codec))
def test_records_for_another_codec_are_returned_without_compression(way: ModuleType, codec: Codec) -> None:
    plain = bytes(build_batch(some_records(5))[HEADER_SIZE:])
    other = Codec.GZIP if codec is not Codec.GZIP else Codec.ZSTD

    found = accept(way, build_batch(some_records(5), codec=codec), codec=int(other))

    assert found is not None
    assert found.plain is not None
    assert bytes(found.plain) == plain


@pytest.mark.parametrize("name", list(WAYS))
@FEW
@given(draws=st.data())
def test_a_batch_with_a_flipped_bit_after_its_epoch_is_refused(name: str, draws: st.DataObject) -> None:
    batch = a_batch(3, draws.draw(st.sampled_from(list(Codec))))
    # The leader epoch, bytes 12 to 15, is the broker's own and not covered by the CRC.
    position = draws.draw(st.integers(0, 11) | st.integers(16, len(batch) - 1))
    batch[position] ^= 1 << draws.draw(st.integers(0, 7))

    assert accept(WAYS[name], batch) is None


def test_a_batch_larger_than_the_limit_is_refused(way: ModuleType) -> None:
    batch = a_batch(3)

    assert accept(way, batch, max_message_bytes=len(batch)) is not None
    assert accept(way, batch, max_message_bytes=len(batch) - 1) is None


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_records_that_decompress_beyond_the_limit_are_refused(way: ModuleType, codec: Codec) -> None:
    size = len(build_batch(some_records(5))) - HEADER_SIZE
    batch = build_batch(some_records(5), codec=codec)

    assert accept(way, batch, max_decompressed_bytes=size) is not None
    assert accept(way, batch, max_decompressed_bytes=size - 1) is None


def test_a_record_without_a_key_is_refused_where_keys_are_required(way: ModuleType) -> None:
    batch = build_batch([a_record_at(TIME_MS, key=None)])

    assert accept(way, batch) is not None
    assert accept(way, batch, requires_key=True) is None


def test_records_outside_of_the_times_are_refused_if_times_are_checked(way: ModuleType) -> None:
    batch = build_batch([a_record_at(TIME_MS)])

    assert accept(way, batch, earliest_ms=TIME_MS, latest_ms=TIME_MS) is not None
    for times in ((TIME_MS + 1, TIME_MS + 9), (TIME_MS - 9, TIME_MS - 1)):
        assert accept(way, batch, earliest_ms=times[0], latest_ms=times[1]) is None
        unchecked = accept(way, batch, earliest_ms=times[0], latest_ms=times[1], checks_times=False)
        assert unchecked is not None
