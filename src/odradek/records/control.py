"""Control batches: one record for brokers and consumers, such as the end of a transaction.

key     version  int16   0
        type     int16   ControlType
value of COMMIT and ABORT
        version            int16   0
        coordinator epoch  int32
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from odradek.records.batch import NO_PARTITION_LEADER_EPOCH
from odradek.records.builder import build_batch
from odradek.records.errors import InvalidRecord
from odradek.records.record import Record

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0


class ControlType(IntEnum):
    """The type of a control record; types above 1 occur only in KRaft's metadata log."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The end of a producer's transaction in one partition: COMMIT or ABORT."""

    control_type: ControlType
    coordinator_epoch: int


def build_end_transaction_marker(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytearray:
    """The control batch that ends the producer's transaction."""
    record = Record(
        base_offset,
        timestamp_ms,
        _KEY.pack(_VERSION, marker.control_type),
        _VALUE.pack(_VERSION, marker.coordinator_epoch),
    )
    return build_batch(
        [record],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
        is_transactional=True,
        is_control=True,
    )


def read_control_type(key: bytes | None) -> ControlType:
    """The type in a control record's key; UNKNOWN for a number that is not known yet, which readers skip."""
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord(f"a control record's key has at least {_KEY.size} bytes")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"a control record's key has version {version}")
    # Later versions may only add fields, so the type can be read from any of them.
    return ControlType(number) if 0 <= number <= ControlType.KRAFT_VOTERS else ControlType.UNKNOWN


def read_end_transaction_marker(record: Record) -> EndTransactionMarker:
    """The commit or abort that a control record holds."""
    control_type = read_control_type(record.key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        raise InvalidRecord(f"a control record of type {control_type.name} ends no transaction")
    if record.value is None or len(record.value) < _VALUE.size:
        raise InvalidRecord(f"an end-transaction marker's value has at least {_VALUE.size} bytes")
    version, coordinator_epoch = _VALUE.unpack_from(record.value)
    if version < 0:
        raise InvalidRecord(f"an end-transaction marker's value has version {version}")
    return EndTransactionMarker(control_type, coordinator_epoch)
