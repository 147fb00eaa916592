"""The walk over batch headers: whole batches are listed, and it is reported why it ends where it ends."""

from __future__ import annotations

import pytest

from odradek.records.kernels.layout import BatchColumn, Stop
from records.samples import a_batch


def test_a_scan_lists_whole_batches_and_stops_before_a_torn_one(kernel):
    first, second = a_batch(2), a_batch(5)
    log = bytes(first + second)

    for cut in range(len(first), len(log)):
        scan = kernel.scan_batches(log[:cut], 0, cut)
        stop = Stop.AT_END if cut == len(first) else Stop.TRUNCATED
        assert (scan.count, scan.stop, scan.position) == (1, stop, len(first))
    scan = kernel.scan_batches(log, 0, len(log))
    assert (scan.count, scan.stop, scan.position) == (2, Stop.AT_END, len(log))
    assert list(scan.column(BatchColumn.POSITION)) == [0, len(first)]
    assert list(scan.column(BatchColumn.RECORD_COUNT)) == [2, 5]
    assert scan.field(1, BatchColumn.LAST_OFFSET) == 4


def test_a_scan_says_why_it_stopped(kernel):
    batch = bytes(a_batch())
    bad_magic = batch[:16] + b"\x01" + batch[17:]
    bad_length = batch[:8] + b"\x00\x00\x00\x30" + batch[12:]

    assert kernel.scan_batches(batch + bad_magic, 0, 2 * len(batch)).stop is Stop.BAD_MAGIC
    assert kernel.scan_batches(batch + bad_length, 0, 2 * len(batch)).stop is Stop.BAD_LENGTH
    full = kernel.scan_batches(batch * 3, 0, 3 * len(batch), 2)
    assert (full.stop, full.count, full.position) == (Stop.TABLE_FULL, 2, 2 * len(batch))
    assert kernel.scan_batches(b"", 0, 0).stop is Stop.AT_END


def test_a_scan_out_of_bounds_is_raised_not_read(kernel):
    with pytest.raises(IndexError):
        kernel.scan_batches(b"1234567", 0, 8)
