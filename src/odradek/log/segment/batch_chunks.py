"""Reads a log file from start to end in large chunks; one kernel call finds the batches of a chunk.

For reading whole segments: recovery, rebuilding of indexes, replay of producer state,
verification. The file is read, not mapped: a failing disk must be an error that closes one directory, not a
signal that ends us.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from odradek.log.files.log_file import LogFile
from odradek.records.batch import HEADER, LOG_OVERHEAD, BatchHeader
from odradek.records.kernels.batch_scan import scan_batches
from odradek.records.kernels.layout import BatchColumn, BatchScan, Stop

CHUNK_BYTES = 1 << 20

_PROBLEMS = {
    Stop.TRUNCATED: "the file ends inside a batch",
    Stop.BAD_LENGTH: "a batch length is less than a header has",
    Stop.BAD_MAGIC: "no batch of magic 2 begins here",
}


class BatchChunk(NamedTuple):
    """Some whole batches. The buffer is used again for the next chunk: keep no view of it."""

    start: int  # position in the file of the buffer's first byte
    buffer: memoryview
    scan: BatchScan
    problem: str | None  # why no batch follows, when the rest of the file is not one

    @property
    def end_position(self) -> int:
        """Where in the file the next batch begins, or the problem is."""
        return self.start + self.scan.position

    @property
    def size_in_bytes(self) -> int:
        """Bytes of its batches."""
        return self.scan.position - self.position(0) if self.scan.count else 0

    def column(self, column: BatchColumn) -> list[int]:
        """One header field of every batch."""
        return self.scan.column(column).tolist()

    def header(self, index: int) -> BatchHeader:
        """The header of one batch."""
        return BatchHeader._make(HEADER.unpack_from(self.buffer, self.position(index)))

    def position(self, index: int) -> int:
        """Where in the buffer a batch begins."""
        return self.scan.field(index, BatchColumn.POSITION)


def batch_chunks(file: LogFile, position: int = 0, chunk_bytes: int = CHUNK_BYTES) -> Iterator[BatchChunk]:
    """Every batch from `position`, where one begins, to the end of the file or the first bytes of none."""
    buffer = bytearray(min(chunk_bytes, max(file.size - position, 1)))
    while position < file.size:
        filled = file.read_into(memoryview(buffer), position)
        view = memoryview(buffer)[:filled]
        is_last = position + filled >= file.size or filled < len(buffer)
        at = 0
        while True:
            scan = scan_batches(view, at, filled)
            if scan.stop is not Stop.TABLE_FULL:
                break
            yield BatchChunk(position, view, scan, None)
            at = scan.position
        problem = _PROBLEMS.get(scan.stop)
        if scan.stop is Stop.TRUNCATED and not is_last:
            problem = None
        yield BatchChunk(position, view, scan, problem)
        if problem is not None:
            return
        if scan.position == 0:
            view.release()
            buffer = bytearray(min(2 * len(buffer), file.size - position))  # one batch larger than the buffer
        position += scan.position


def is_only_room(file: LogFile, position: int) -> bool:
    """Whether nothing but space for batches follows: zeroes, and more than half a batch can begin with.

    So it is behind the end of a log that is being written, or was when its broker was killed (ADR 9).
    """
    if file.size - position < LOG_OVERHEAD:
        return False
    while piece := file.read(position, CHUNK_BYTES):
        if piece.strip(b"\0"):
            return False
        position += len(piece)
    return True
