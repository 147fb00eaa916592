"""Merges segments into one clean segment: read, filter, write, index, sync; as .cleaned files.

The sources are closed and do not change. The new segment is not read before it is swapped in; after a crash
before that, loading removes its files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odradek.log import filenames
from odradek.log.cleaner.errors import reading
from odradek.log.cleaner.filter.batch_filter import BatchFilter, check_crcs
from odradek.log.cleaner.statistics import CleanerStatistics
from odradek.log.files.log_file import PartitionDirectory
from odradek.log.recovery.segment_scan import IndexBuilder, SegmentScan
from odradek.log.segment.batch_chunks import BatchChunk, batch_chunks
from odradek.log.segment.segment import Segment
from odradek.log.segment.time_index import TimestampOffset
from odradek.records.kernels.batch_scan import scan_batches
from odradek.records.kernels.layout import Stop


class SegmentWriter:
    """A segment with the suffix .cleaned that grows chunk by chunk; used by one thread."""

    __slots__ = ("_found", "_index", "segment")

    def __init__(self, directory: PartitionDirectory, base_offset: int, index_interval_bytes: int) -> None:
        remove_cleaned(directory, base_offset)
        self.segment = Segment.create(
            directory,
            base_offset,
            index_interval_bytes=index_interval_bytes,
            now_ms=0,
            state=filenames.CLEANED,
        )
        self._found = SegmentScan(base_offset, TimestampOffset(-1, base_offset))
        self._index = IndexBuilder(index_interval_bytes, self._found)

    def append(self, batches: memoryview) -> None:
        """Write whole batches, and add their index entries."""
        start = self.segment.log.append(batches)
        at = 0
        while at < len(batches):
            scan = scan_batches(batches, at, len(batches))
            if scan.stop not in (Stop.AT_END, Stop.TABLE_FULL):
                raise AssertionError(f"invalid batch from the cleaner: {scan.stop.name} at {scan.position}")
            self._index.add_batches(BatchChunk(start, batches, scan, None), scan.count)
            at = scan.position

    def finish(self) -> Segment:
        """Complete the indexes and sync everything to disk; blocks."""
        segment = self.segment
        found = self._found
        segment.replace_indexes(found.offset_entries, found.time_entries, found.greatest)
        segment.seal()
        for file in segment.files():
            file.sync()
        return segment


def rewrite(
    sources: Sequence[Segment],
    batch_filter: BatchFilter,
    statistics: CleanerStatistics,
    *,
    chunk_bytes: int,
    pass_bytes: Callable[[int], None],
) -> Segment:
    """What survives of the sources, as one segment, sealed and synced; blocks.

    `pass_bytes` is called with the bytes read or written, and aborts by raising. Nothing is left behind
    behind then.
    """
    first = sources[0]
    writer = SegmentWriter(first.directory, first.base_offset, first.index_interval_bytes)
    try:
        batch_filter.keep_end(_last_offset(sources))
        for source in sources:
            with reading(source):
                _copy(source, batch_filter, writer, chunk_bytes, pass_bytes)
            statistics.bytes_read += source.size
        for aborted in batch_filter.transactions.take_kept_aborted():
            writer.segment.append_aborted(aborted)
        cleaned = writer.finish()
        first.directory.files.copy_modification_time(sources[-1].log.path, cleaned.log.path)
    except BaseException:
        writer.segment.close()
        remove_cleaned(first.directory, first.base_offset)
        raise
    statistics.bytes_written += cleaned.size
    statistics.segments_read += len(sources)
    statistics.segments_written += 1
    return cleaned


def _copy(
    source: Segment,
    batch_filter: BatchFilter,
    writer: SegmentWriter,
    chunk_bytes: int,
    pass_bytes: Callable[[int], None],
) -> None:
    for chunk in batch_chunks(source.log, chunk_bytes=chunk_bytes):
        check_crcs(chunk)
        survivors = batch_filter.filter(chunk)
        pass_bytes(chunk.size_in_bytes)
        if len(survivors):
            writer.append(survivors)
            pass_bytes(len(survivors))


def _last_offset(sources: Sequence[Segment]) -> int:
    """The last offset of the last batch; it must stay, since it is where the new segment ends."""
    for source in reversed(sources):
        if source.size:
            with reading(source):
                return source.next_offset() - 1
    return -1


def remove_cleaned(directory: PartitionDirectory, base_offset: int) -> None:
    """Remove the files of an interrupted run."""
    for kind in filenames.SEGMENT_KINDS:
        name = filenames.segment_filename(base_offset, kind, filenames.CLEANED)
        directory.files.remove(directory.join(name))
