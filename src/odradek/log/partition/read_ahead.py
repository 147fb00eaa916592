# cython: annotation_typing=False
"""Reads that may have to wait for a disk: distinguished from those that will not, and made ready by a thread.

Compiled by Cython (read_ahead.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import contextlib

from odradek.log.errors import DamagedIndex
from odradek.log.files.log_file import LogFile
from odradek.log.files.page_cache_state import LOOK_AHEAD_BYTES, READ_AHEAD_BYTES, CachedRange, LogEndMark
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.partition.reading import BatchRun, LogEnd, find_batches
from odradek.records.errors import RecordsError


def is_read_cached(log: PartitionLog, offset: int, max_bytes: int) -> bool:
    """Whether a read of at most `max_bytes` will not have to wait for the disk; by the log's owner."""
    end_offset = log.log_end_offset
    if not log.log_start_offset <= offset < end_offset:
        return True  # there is nothing to read
    active, page_cache = log.segments.active, log.page_cache
    return page_cache.covers(offset, max_bytes, LogEndMark(active.base_offset, active.size, end_offset))


def notice_cached(log: PartitionLog, offset: int, max_bytes: int) -> bool:
    """Whether all that such a read needs is in the page cache, found without reading it; by the log's owner.

    If so it is noted, with what a reader that continues needs next, and `is_read_cached` from then on. If the
    kernel evicts a few pages, only those reads wait that need them.
    """
    ahead_bytes = _look_ahead_bytes(log, offset, max_bytes)
    if ahead_bytes > 0 and _notice_cached(log, offset, max_bytes, ahead_bytes):
        return True
    return _notice_cached(log, offset, max_bytes, 0)


def _look_ahead_bytes(log: PartitionLog, offset: int, max_bytes: int) -> int:
    """Four times as far as the last look that found everything: a hole ahead is met a few times only."""
    earlier = _run_read_before(log, offset)
    return 0 if earlier is None else min(4 * (earlier.ahead_bytes + max_bytes), LOOK_AHEAD_BYTES)


def _run_read_before(log: PartitionLog, offset: int) -> CachedRange | None:
    """The run that a reader who goes on has just read; None if this one begins anew."""
    earlier = log.page_cache.run
    return earlier if earlier is not None and earlier.is_followed_by(offset) else None


def _notice_cached(log: PartitionLog, offset: int, max_bytes: int, ahead_bytes: int) -> bool:
    segment = log.segments.floor(offset)
    if segment is None:
        return False
    with contextlib.suppress(OSError, RecordsError, DamagedIndex):
        if not _is_cached(segment.offset_index.file, 0, segment.offset_index.file.size):
            return False
        entry = segment.offset_index.lookup(offset)
        start = 0 if entry is None else entry.position
        if not _is_cached(segment.log, start, max_bytes + ahead_bytes):
            return False
        run = _find_run(log, offset, max_bytes + ahead_bytes)
        if run is None:
            return False
        seen_end = start + max_bytes + ahead_bytes if run.segment is segment else run.start
        if run.end <= seen_end or _is_cached(run.segment.log, seen_end, run.end - seen_end):
            _note(log, run, offset, max_bytes, ahead_bytes)
            return True
    return False


def _is_cached(file: LogFile, position: int, length: int) -> bool:
    length = min(length, file.size - position)
    return length <= 0 or file.directory.files.is_cached(file.handle(), position, length)


def read_ahead(log: PartitionLog, offset: int, max_bytes: int) -> None:
    """Bring what such a read needs into the page cache, and more for a reader that goes on. Any thread.

    Blocks for as long as the disk likes. Whatever goes wrong will go wrong again when it is read.
    """
    ahead_bytes = 0 if _run_read_before(log, offset) is None else READ_AHEAD_BYTES
    with contextlib.suppress(OSError, RecordsError):
        try:
            _read_ahead(log, offset, max_bytes, ahead_bytes)
        except FileNotFoundError:
            # Retention or compaction has renamed the file between a look at its name and its opening.
            _read_ahead(log, offset, max_bytes, ahead_bytes)


def _read_ahead(log: PartitionLog, offset: int, max_bytes: int, ahead_bytes: int) -> None:
    run = _find_run(log, offset, max_bytes + ahead_bytes)
    if run is None:
        return
    loaded = run.range()
    log.directory.files.load_into_cache(loaded.file, loaded.position, loaded.length)
    _note(log, run, offset, max_bytes, ahead_bytes)


def _find_run(log: PartitionLog, offset: int, max_bytes: int) -> BatchRun | None:
    active = log.segments.active
    end = LogEnd(active, active.size, log.log_end_offset)
    return find_batches(log.segments, end, offset, end.offset, max_bytes, True)


def _note(log: PartitionLog, run: BatchRun, offset: int, max_bytes: int, ahead_bytes: int) -> None:
    last_offset = run.upper_offset - 1
    if run.end < run.segment.size:
        # A read that begins later than this would go beyond what was loaded.
        last_start = run.segment.floor_boundary(run.start, max(run.end - max_bytes, run.start)).position
        last_offset = run.segment.span_at(last_start).base_offset
    log.page_cache.run = CachedRange(
        offset, max(last_offset, offset), run.upper_offset, max_bytes, ahead_bytes
    )
