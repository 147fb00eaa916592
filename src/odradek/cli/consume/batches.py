"""The records in an answer to Fetch: whole batches only, markers left out, aborted transactions on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from odradek.records.batch import BatchHeader, TimestampType, iterate_headers
from odradek.records.control import ControlType, read_control_type
from odradek.records.errors import TruncatedBatch
from odradek.records.record import Record, read_records

MAX_BATCH_BYTES = 1024 * 1024 * 1024


class AbortedTransaction(NamedTuple):
    """A transaction whose records must not be seen: whose, and from which offset on."""

    producer_id: int
    first_offset: int


class ReadBatch(NamedTuple):
    """The records of one batch that are wanted, and the offset after it."""

    records: list[Record]
    next_offset: int
    is_log_append_time: bool


def read_batches(
    fetched: memoryview, position: int, aborted: Sequence[AbortedTransaction] | None
) -> Iterator[ReadBatch]:
    """The batches from offset `position` on; with `aborted` only what was committed."""
    pending = sorted(aborted or (), key=lambda one: one.first_offset)
    aborting: set[int] = set()
    try:
        for start, header in iterate_headers(fetched):
            while pending and pending[0].first_offset <= header.last_offset:
                aborting.add(pending.pop(0).producer_id)
            is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
            if header.is_control:
                if _is_abort(fetched, start):
                    aborting.discard(header.producer_id)
                yield ReadBatch([], header.next_offset, is_append_time)
            elif _is_aborted(header, aborting):
                yield ReadBatch([], header.next_offset, is_append_time)
            else:
                records = read_records(fetched, start, max_bytes=MAX_BATCH_BYTES)
                wanted = [record for record in records if record.offset >= position]
                yield ReadBatch(wanted, header.next_offset, is_append_time)
    except TruncatedBatch:
        # A broker may cut its answer anywhere; the rest comes with the next one.
        return


def _is_aborted(header: BatchHeader, aborting: set[int]) -> bool:
    return header.is_transactional and header.producer_id in aborting


def _is_abort(fetched: memoryview, start: int) -> bool:
    (marker,) = read_records(fetched, start, max_bytes=MAX_BATCH_BYTES)
    return marker.key is not None and read_control_type(marker.key) is ControlType.ABORT
