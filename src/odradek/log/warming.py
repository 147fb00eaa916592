"""Reads that may have to wait for a disk: told apart from those that will not, and made ready by a thread."""

from __future__ import annotations

import contextlib

from odradek.log.partition_log import PartitionLog
from odradek.log.reading import LogEnd, find_batches
from odradek.log.warmth import READ_AHEAD_BYTES, LogEndMark, WarmRun
from odradek.records.errors import RecordsError


def is_warm(log: PartitionLog, offset: int, max_bytes: int) -> bool:
    """Whether a read of at most `max_bytes` will not have to wait for the disk; by the log's owner."""
    end_offset = log.log_end_offset
    if not log.log_start_offset <= offset < end_offset:
        return True  # there is nothing to read
    active = log.segments.active
    return log.warmth.covers(offset, max_bytes, LogEndMark(active.base_offset, active.size, end_offset))


def warm_up(log: PartitionLog, offset: int, max_bytes: int) -> None:
    """Bring what such a read needs into the page cache, and more for a reader that goes on. Any thread.

    Blocks for as long as the disk likes. Whatever goes wrong will go wrong again when it is read.
    """
    earlier = log.warmth.run
    ahead_bytes = READ_AHEAD_BYTES if earlier is not None and earlier.is_followed_by(offset) else 0
    with contextlib.suppress(OSError, RecordsError):
        try:
            _warm_up(log, offset, max_bytes, ahead_bytes)
        except FileNotFoundError:
            # Retention or compaction has renamed the file between a look at its name and its opening.
            _warm_up(log, offset, max_bytes, ahead_bytes)


def _warm_up(log: PartitionLog, offset: int, max_bytes: int, ahead_bytes: int) -> None:
    active = log.segments.active
    end = LogEnd(active, active.size, log.log_end_offset)
    run = find_batches(log.segments, end, offset, end.offset, max_bytes + ahead_bytes, min_one_batch=True)
    if run is None:
        return
    warmed = run.range()
    log.directory.files.warm(warmed.file, warmed.position, warmed.length)
    last_offset = run.upper_offset - 1
    if run.end < run.segment.size:
        # A read that begins later than this would go beyond what was warmed.
        last_start = run.segment.floor_boundary(run.start, max(run.end - max_bytes, run.start))
        last_offset = run.segment.span_at(last_start).base_offset
    log.warmth.run = WarmRun(offset, max(last_offset, offset), run.upper_offset, max_bytes)
