"""Control batches: the bytes of a marker, and what a reader does with those it does not know."""

from __future__ import annotations

import pytest

from odradek.records.batch import read_header
from odradek.records.control import (
    ControlType,
    EndTransactionMarker,
    build_end_transaction_marker,
    read_control_type,
    read_end_transaction_marker,
)
from odradek.records.errors import InvalidRecord
from odradek.records.record import Record, read_records
from odradek.records.validate import validate_for_log
from records.samples import LIMIT


@pytest.mark.parametrize("control_type", [ControlType.COMMIT, ControlType.ABORT])
def test_a_marker_is_a_transactional_control_batch_of_one_record(control_type):
    marker = EndTransactionMarker(control_type, coordinator_epoch=12)
    batch = build_end_transaction_marker(
        marker, producer_id=7, producer_epoch=3, timestamp_ms=99, base_offset=40, partition_leader_epoch=5
    )
    header = validate_for_log(batch, max_decompressed_bytes=LIMIT)
    (record,) = read_records(batch, max_bytes=LIMIT)

    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert (header.base_offset, header.partition_leader_epoch, record.timestamp_ms) == (40, 5, 99)
    assert record.key == bytes([0, 0, 0, control_type])
    assert record.value == b"\x00\x00\x00\x00\x00\x0c"
    assert read_end_transaction_marker(record) == marker


def test_types_of_the_metadata_log_are_known_and_later_ones_are_not():
    assert read_control_type(b"\x00\x00\x00\x02") is ControlType.LEADER_CHANGE
    assert read_control_type(b"\x00\x00\x00\x63") is ControlType.UNKNOWN
    assert read_control_type(b"\x00\x05\x00\x01 and more") is ControlType.COMMIT  # a later version of the key


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x01"])
def test_a_key_that_is_no_control_key_is_refused(key):
    with pytest.raises(InvalidRecord):
        read_control_type(key)


@pytest.mark.parametrize("value", [None, b"", b"\x00\x00\x00\x00\x00", b"\xff\xff\x00\x00\x00\x00"])
def test_a_marker_without_its_value_is_refused(value):
    with pytest.raises(InvalidRecord):
        read_end_transaction_marker(Record(0, 0, b"\x00\x00\x00\x01", value))


def test_another_control_record_ends_no_transaction():
    with pytest.raises(InvalidRecord, match="LEADER_CHANGE"):
        read_end_transaction_marker(Record(0, 0, b"\x00\x00\x00\x02", bytes(6)))


def test_a_marker_is_no_users_batch():
    marker = EndTransactionMarker(ControlType.COMMIT, 0)
    assert read_header(
        build_end_transaction_marker(marker, producer_id=1, producer_epoch=0, timestamp_ms=0)
    ).is_control
