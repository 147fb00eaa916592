"""Producer state as a file, `N.snapshot`: the state of the producers just before offset N. Pure.

    position size field
           0    2 version: 1
           2    4 CRC-32C of everything after it
           6    4 number of entries
          10    … entries of 46 bytes:
                8 producer id
                2 producer epoch
                4 last sequence            -1: none in this epoch
                8 last offset              -1: none
                4 offset delta             records in the last batch, less one
                8 timestamp, ms            of the last batch or marker
                4 coordinator epoch        of the last marker, -1: none
                8 first offset of the open transaction, -1: none

Only the last batch of each producer is kept; log/partition/earlier_batches.py finds the ones before it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from odradek.log.producers.producer_states import BatchMetadata, ProducerEntry
from odradek.records.crc import crc32c

VERSION = 1
_HEADER = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_END = 6


class CorruptSnapshot(ValueError):
    """The file is not a valid snapshot; an older one and the log replace it."""


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """The file's content."""
    rows = [
        _ENTRY.pack(
            entry.producer_id,
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.last_offset_delta,
            entry.last_timestamp_ms,
            entry.coordinator_epoch,
            entry.current_txn_first_offset,
        )
        for entry in entries
    ]
    body = struct.pack(">i", len(rows)) + b"".join(rows)
    return struct.pack(">hI", VERSION, crc32c(body)) + body


def decode_snapshot(content: bytes) -> list[ProducerEntry]:
    """The producers in the file; CorruptSnapshot if it is damaged."""
    if len(content) < _HEADER.size:
        raise CorruptSnapshot(f"{len(content)} bytes are less than a snapshot's header")
    version, crc, count = _HEADER.unpack_from(content)
    if version != VERSION:
        raise CorruptSnapshot(f"version {version} is unknown")
    if crc32c(memoryview(content)[_CRC_END:]) != crc:
        raise CorruptSnapshot("wrong CRC")
    if len(content) != _HEADER.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{len(content)} bytes do not hold {count} entries")
    return [_decode_entry(row) for row in _ENTRY.iter_unpack(memoryview(content)[_HEADER.size :])]


def _decode_entry(row: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, sequence, offset, delta, timestamp_ms, coordinator_epoch, txn_first_offset = row
    batches = (BatchMetadata(sequence, offset, delta, timestamp_ms),) if offset >= 0 else ()
    return ProducerEntry(
        producer_id,
        epoch,
        coordinator_epoch,
        timestamp_ms,
        txn_first_offset,
        batches,
        is_from_snapshot=bool(batches),
    )
