"""Every record that a topic does not accept is named, in the words of Kafka 4.3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.records import rejections
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.errors import InvalidRecord, RecordError, RejectedRecords
from odradek.records.record import Record
from odradek.records.validate import validate_for_produce
from records.samples import LIMIT, patched

ORDERS = TopicPartition("orders", 0)
NO_KEY = "Compacted topic cannot accept message without key in topic partition orders-0"
UNTIMELY = (
    "Timestamp {} of message with offset {} is out of range. The timestamp should be within [1000, 2000]"
)


def refused(
    records: list[tuple[int, bytes | None]],
    codec: Codec = Codec.NONE,
    *,
    requires_key: bool = True,
    timestamp_range_ms: tuple[int, int] | None = (1000, 2000),
) -> RejectedRecords:
    batch = build_batch(
        [Record(index, time_ms, key) for index, (time_ms, key) in enumerate(records)], codec=codec
    )
    with pytest.raises(RejectedRecords) as caught:
        validate_for_produce(
            batch,
            max_message_bytes=LIMIT,
            max_decompressed_bytes=LIMIT,
            requires_key=requires_key,
            timestamp_range_ms=timestamp_range_ms,
            partition=ORDERS,
        )
    return caught.value


@pytest.mark.parametrize("codec", list(Codec))
def test_each_record_without_a_key_is_named_and_the_message_describes_three(codec: Codec) -> None:
    error = refused([(1500, None if index % 10 == 3 else b"k") for index in range(100)], codec)

    assert error.record_errors == tuple(RecordError(index, NO_KEY) for index in range(3, 100, 10))
    assert error.error_code is ErrorCode.INVALID_RECORD
    assert str(error) == (
        "One or more records have been rejected due to 10 record errors in total, and only showing the first "
        f"three errors at most: [RecordError(batchIndex=3, message='{NO_KEY}'), "
        f"RecordError(batchIndex=13, message='{NO_KEY}'), RecordError(batchIndex=23, message='{NO_KEY}')]"
    )


def test_a_missing_key_goes_before_a_timestamp_which_decides_the_error_code() -> None:
    error = refused([(1500, None), (999, b"k"), (2001, None), (-1, b"k"), (1000, b"k"), (2000, b"")])

    assert [(one.batch_index, one.message) for one in error.record_errors] == [
        (0, NO_KEY),
        (1, UNTIMELY.format(999, 1)),
        (2, NO_KEY),
    ]
    assert error.error_code is ErrorCode.INVALID_TIMESTAMP
    assert str(error) == "One or more records have been rejected due to invalid timestamp"


def test_a_batch_that_is_broken_is_refused_for_that() -> None:
    batch = build_batch([Record(0, 1500, None), Record(1, 1500, b"k")])
    broken = patched(batch, len(batch) - 1, ">B", 2)  # a header that is not there
    with pytest.raises(InvalidRecord) as caught:
        validate_for_produce(
            broken, max_message_bytes=LIMIT, max_decompressed_bytes=LIMIT, requires_key=True, partition=ORDERS
        )
    assert not isinstance(caught.value, RejectedRecords)
    assert [one.batch_index for one in caught.value.record_errors] == [1]


def test_no_more_are_named_than_a_response_should_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejections, "MAX_RECORD_ERRORS", 5)
    assert len(refused([(1500, None)] * 7).record_errors) == 5


@given(
    st.lists(st.tuples(st.sampled_from([-1, 999, 1000, 1500, 2001]), st.sampled_from([None, b"", b"k"]))),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 2, 3, 4096]),
)
def test_all_of_them_and_no_others_are_named(
    records: list[tuple[int, bytes | None]], requires_key: bool, checks_times: bool, chunk: int
) -> None:
    bad = [
        index
        for index, (time_ms, key) in enumerate(records)
        if (requires_key and key is None) or (checks_times and time_ms in (999, 2001))
    ]
    if not bad:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rejections, "CHUNK_RECORDS", chunk)
        error = refused(
            records, requires_key=requires_key, timestamp_range_ms=(1000, 2000) if checks_times else None
        )
    assert [one.batch_index for one in error.record_errors] == bad
