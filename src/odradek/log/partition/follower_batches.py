"""Splits the bytes that a leader sent into whole batches, and checks them. Pure."""

from __future__ import annotations

from typing import NamedTuple

from odradek.log.errors import UnexpectedAppendOffset
from odradek.records.batch import HEADER_SIZE, BatchHeader, Buffer, has_valid_crc, iterate_headers
from odradek.records.errors import CorruptBatch
from odradek.records.kernels.batch_scan import scan_batches
from odradek.records.kernels.layout import Stop


class FollowerBatches(NamedTuple):
    """The whole batches at the front of a fetch, and their headers."""

    payload: memoryview
    headers: list[BatchHeader]


def whole_batches(records: Buffer, log_end_offset: int) -> FollowerBatches:
    """The batches that continue a log; an incomplete batch at the end is ignored.

    CorruptBatch for bytes that are no batch, UnexpectedAppendOffset for offsets that go back.
    """
    view = memoryview(records)
    scan = scan_batches(view, 0, len(view), max(1, len(view) // HEADER_SIZE))
    if scan.stop not in (Stop.AT_END, Stop.TRUNCATED):
        raise CorruptBatch(f"the leader sent an invalid batch: {scan.stop.name}", scan.position)
    headers = []
    for position, header in iterate_headers(view, 0, scan.position):
        if header.base_offset < log_end_offset:
            raise UnexpectedAppendOffset(header.base_offset, log_end_offset)
        if not has_valid_crc(view, position, header):
            raise CorruptBatch(f"batch {header.base_offset} has a wrong CRC", position)
        headers.append(header)
        log_end_offset = header.next_offset
    return FollowerBatches(view[: scan.position], headers)
