"""The loops of recovery over a table of batches: is their order plain, and what do the indexes get of them.

Compiled by Cython, or interpreted as is. The table is what `scan_batches` makes of a chunk of a log file.
"""

from __future__ import annotations

from enum import IntEnum

import cython

from odradek.records.kernels.layout import BATCH_ROW_WIDTH, BatchColumn

IS_COMPILED = cython.compiled


class ScanProgress(IntEnum):
    """What `index_batches` carries from one table of a segment to the next: an int64 each."""

    LAST_POSITION = 0  # of the batch with the latest index entry
    GREATEST_MS = 1  # the greatest timestamp so far, and the last offset of the batch that has it
    GREATEST_OFFSET = 2
    LATEST_ENTRY_MS = 3  # of the time index
    RECORD_COUNT = 4
    LEADER_EPOCH = 5  # the latest that is noted; no call changes it
    IS_LATER_EPOCH = 6  # 1 when a batch had a later one


# C integers by scan_kernels.pxd, so that the loops need no Python object.
_WIDTH = BATCH_ROW_WIDTH
_POSITION = BatchColumn.POSITION
_BASE_OFFSET = BatchColumn.BASE_OFFSET
_LAST_OFFSET = BatchColumn.LAST_OFFSET
_EPOCH = BatchColumn.PARTITION_LEADER_EPOCH
_MAX_TIMESTAMP = BatchColumn.MAX_TIMESTAMP_MS
_RECORD_COUNT = BatchColumn.RECORD_COUNT
_LAST_POSITION = ScanProgress.LAST_POSITION
_GREATEST_MS = ScanProgress.GREATEST_MS
_GREATEST_OFFSET = ScanProgress.GREATEST_OFFSET
_LATEST_ENTRY_MS = ScanProgress.LATEST_ENTRY_MS
_RECORDS = ScanProgress.RECORD_COUNT
_NOTED_EPOCH = ScanProgress.LEADER_EPOCH
_IS_LATER_EPOCH = ScanProgress.IS_LATER_EPOCH
_OFFSET_ENTRY_SIZE = 8
_TIME_ENTRY_SIZE = 12


def count_plain(
    batches: cython.longlong[::1],
    count: cython.Py_ssize_t,
    next_offset: cython.longlong,
    leader_epoch: cython.longlong,
    last_offset_limit: cython.longlong,
):
    """How many at the front go on from `next_offset` without a gap, in that epoch, up to the limit."""
    index: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = 0
    last_offset: cython.longlong
    _check_count(count, len(batches))
    with cython.nogil:
        while index < count:
            last_offset = batches[at + _LAST_OFFSET]
            if batches[at + _BASE_OFFSET] != next_offset or batches[at + _EPOCH] != leader_epoch:
                break
            if last_offset < next_offset or last_offset > last_offset_limit:
                break
            next_offset = last_offset + 1
            index += 1
            at += _WIDTH
    return index


def index_batches(
    batches: cython.longlong[::1],
    count: cython.Py_ssize_t,
    start: cython.longlong,
    base_offset: cython.longlong,
    interval_bytes: cython.longlong,
    progress: cython.longlong[::1],
):
    """The entries, as the two files have them, that the first `count` batches put into the indexes.

    `start` is where in the file the table's position 0 lies, `base_offset` the segment's; `progress` goes on
    from the batches before, and is moved behind these.
    """
    _check_count(count, len(batches))
    if len(progress) != len(ScanProgress):
        raise ValueError(f"{len(progress)} numbers of progress, not {len(ScanProgress)}")
    for_offsets = bytearray(count * _OFFSET_ENTRY_SIZE)
    for_times = bytearray(count * _TIME_ENTRY_SIZE)
    offset_entries: cython.uchar[::1] = for_offsets
    time_entries: cython.uchar[::1] = for_times
    offsets_end: cython.Py_ssize_t = 0
    times_end: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t
    index: cython.Py_ssize_t
    position: cython.longlong
    with cython.nogil:
        for index in range(count):
            at = index * _WIDTH
            _note_batch(batches, at, progress)
            position = start + batches[at + _POSITION]
            if position <= progress[_LAST_POSITION] + interval_bytes:
                continue
            _put_big_endian(offset_entries, offsets_end, batches[at + _LAST_OFFSET] - base_offset, 4)
            _put_big_endian(offset_entries, offsets_end + 4, position, 4)
            offsets_end += _OFFSET_ENTRY_SIZE
            progress[_LAST_POSITION] = position
            if progress[_GREATEST_MS] > progress[_LATEST_ENTRY_MS]:
                _put_big_endian(time_entries, times_end, progress[_GREATEST_MS], 8)
                _put_big_endian(time_entries, times_end + 8, progress[_GREATEST_OFFSET] - base_offset, 4)
                times_end += _TIME_ENTRY_SIZE
                progress[_LATEST_ENTRY_MS] = progress[_GREATEST_MS]
    return memoryview(for_offsets)[:offsets_end], memoryview(for_times)[:times_end]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _note_batch(
    batches: cython.longlong[::1], at: cython.Py_ssize_t, progress: cython.longlong[::1]
) -> cython.void:
    """Greatest timestamp, records and epoch; a batch emptied by compaction has the time of no record."""
    if batches[at + _RECORD_COUNT] > 0:
        progress[_RECORDS] += batches[at + _RECORD_COUNT]
        if batches[at + _MAX_TIMESTAMP] > progress[_GREATEST_MS]:
            progress[_GREATEST_MS] = batches[at + _MAX_TIMESTAMP]
            progress[_GREATEST_OFFSET] = batches[at + _LAST_OFFSET]
    if batches[at + _EPOCH] > progress[_NOTED_EPOCH]:
        progress[_IS_LATER_EPOCH] = 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_big_endian(
    buffer: cython.uchar[::1], position: cython.Py_ssize_t, number: cython.longlong, size: cython.int
) -> cython.void:
    place: cython.int
    for place in range(size):
        buffer[position + place] = (number >> (8 * (size - 1 - place))) & 0xFF


def _check_count(count: cython.Py_ssize_t, numbers: cython.Py_ssize_t):
    if not 0 <= count * _WIDTH <= numbers:
        raise IndexError(f"{count} batches are not within {numbers} numbers")
