"""Reads the files of segments and converts them to rows, with at most one chunk in memory.

Like Kafka, it prints problems to standard error at the end; the exit code is then 1.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from odradek.cli.log.decoders import RecordDecoder
from odradek.cli.log.dump_output import DumpOutput
from odradek.cli.log.dump_rows import aborted_fields, batch_fields, producer_fields, record_fields
from odradek.log import filenames
from odradek.log.errors import DamagedIndex
from odradek.log.filenames import SegmentFile, segment_filename
from odradek.log.offline.read_only import MAX_DECOMPRESSED_BYTES, read_only_directory, read_only_file
from odradek.log.producers.producer_snapshots import CorruptSnapshot, decode_snapshot
from odradek.log.segment.batch_chunks import BatchChunk, batch_chunks, is_only_room
from odradek.log.segment.offset_index import OffsetIndex
from odradek.log.segment.segment import Segment
from odradek.log.segment.segment_reader import BatchSpan
from odradek.log.segment.time_index import TimeIndex, TimestampOffset
from odradek.log.segment.txn_index import TxnIndex
from odradek.records.batch import BatchHeader, has_valid_crc
from odradek.records.errors import RecordsError
from odradek.records.record import read_records

INT_MAX = 2**31 - 1
_NOTES_KEPT = 1000


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """What to print; the names are those of the flags."""

    deep_iteration: bool = False
    decoder: RecordDecoder | None = None  # given: contents are printed
    skip_record_metadata: bool = False
    index_sanity_check: bool = False
    verify_index_only: bool = False
    max_message_size: int = 5 * 1024 * 1024
    max_bytes: int = INT_MAX


@dataclass(slots=True)
class Notes:
    """Notes printed at the end: all are counted, the first are kept."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, note: str) -> None:
        """Add a note."""
        self.count += 1
        if self.count <= _NOTES_KEPT:
            self.first.append(note)


@dataclass(slots=True)
class Dump:
    """One run over any number of files."""

    options: DumpOptions
    output: DumpOutput
    advance: Callable[[int], None]
    problems: Notes = field(default_factory=Notes)
    gaps: Notes = field(default_factory=Notes)  # not wrong where a log is compacted

    def file(self, path: str, file: SegmentFile) -> None:
        """Dump a file that is of a segment, by its name."""
        self.output.file(path)
        {
            filenames.LOG: self._log,
            filenames.OFFSET_INDEX: self._offset_index,
            filenames.TIME_INDEX: self._time_index,
            filenames.TXN_INDEX: self._txn_index,
            filenames.SNAPSHOT: self._snapshot,
        }[file.kind](path, file)

    # The log

    def _log(self, path: str, file: SegmentFile) -> None:
        self.output.sentence(
            f"Log starting offset: {file.base_offset}", "log", {"startOffset": file.base_offset}
        )
        log = read_only_file(path, self.options.max_bytes)
        whole, next_offset, problem = 0, -1, None
        for chunk in batch_chunks(log):
            for index in range(chunk.scan.count):
                next_offset = self._batch(path, chunk, index, next_offset)
            self.advance(chunk.end_position - whole)
            whole, problem = chunk.end_position, chunk.problem
        if whole < log.size and self.options.max_bytes == INT_MAX:
            count = log.size - whole
            name = os.path.basename(path)
            self.output.sentence(
                f"Found {count} invalid bytes at the end of {name}", "trailing bytes", {"count": count}
            )
            if not is_only_room(log, whole):
                self.problems.add(f"{path}: byte {whole}: {problem}")

    def _batch(self, path: str, chunk: BatchChunk, index: int, next_offset: int) -> int:
        at, header = chunk.position(index), chunk.header(index)
        position = chunk.start + at
        is_valid = has_valid_crc(chunk.buffer, at, header)
        self.output.row("batch", batch_fields(position, header, is_valid))
        if not is_valid:
            self.problems.add(f"{path}: byte {position}: the CRC of batch {header.base_offset} does not fit")
        if not self.options.deep_iteration:
            return next_offset
        try:
            return self._records(path, chunk.buffer[at : at + header.size_in_bytes], header, next_offset)
        except RecordsError as error:
            self.problems.add(f"{path}: byte {position}: {error.problem}")
            return header.next_offset

    def _records(self, path: str, batch: memoryview, header: BatchHeader, next_offset: int) -> int:
        shows_metadata = not self.options.skip_record_metadata
        decoder = self.options.decoder if not header.is_control else None
        for record in read_records(batch, max_bytes=MAX_DECOMPRESSED_BYTES):
            if record.offset != next_offset and next_offset >= 0:
                self.gaps.add(f"{path}: {next_offset - 1} is followed by {record.offset}")
            next_offset = record.offset + 1
            fields = record_fields(header, record) if shows_metadata else {}
            if decoder is not None:
                key, value = decoder(record)
                fields |= {"key": key} if key is not None else {}
                fields |= {"payload": value} if value is not None else {}
            self.output.row("record", fields)
        return next_offset

    # The indexes

    def _offset_index(self, path: str, file: SegmentFile) -> None:
        segment = _open_segment(path, file)
        index = segment.offset_index
        if len(index) == 0:
            self.output.sentence(f"{path} is empty.", "empty index", {})
        elif self.options.index_sanity_check:
            self._check_sanity(path, lambda: index.check_shape(segment.size))
        else:
            self._offset_entries(path, segment, index)
        self.advance(index.file.size)

    def _offset_entries(self, path: str, segment: Segment, index: OffsetIndex) -> None:
        for number, entry in enumerate(index):
            if entry.offset == index.base_offset and number > 0:
                return  # zeros of a preallocated file
            found = _span_at(segment, entry.position)
            is_readable = found is not None and found.size <= self.options.max_message_size
            log_offset = found.last_offset if found is not None and is_readable else -1
            if log_offset != entry.offset:
                self.problems.add(
                    f"{path}: Index offset: {entry.offset}, log offset: {log_offset} (byte {entry.position})"
                )
            if not self.options.verify_index_only:
                self.output.row("offset entry", {"offset": entry.offset, "position": entry.position})

    def _time_index(self, path: str, file: SegmentFile) -> None:
        segment = _open_segment(path, file)
        if self.options.index_sanity_check:
            self._check_sanity(path, segment.time_index.check_shape)
        else:
            self._time_entries(path, segment, segment.time_index)
        self.advance(segment.time_index.file.size)

    def _time_entries(self, path: str, segment: Segment, index: TimeIndex) -> None:
        previous_ms = -1
        for number, entry in enumerate(index):
            if entry.offset == index.base_offset and number > 0:
                return
            problem = _time_problem(segment, entry, previous_ms)
            if problem is not None:
                self.problems.add(f"{path}: {problem}")
            if not self.options.verify_index_only:
                self.output.row("time entry", {"timestamp": entry.timestamp_ms, "offset": entry.offset})
            previous_ms = entry.timestamp_ms

    def _check_sanity(self, path: str, check: Callable[[], None]) -> None:
        try:
            check()
        except DamagedIndex as error:
            self.problems.add(str(error))
        else:
            self.output.sentence(f"{path} passed sanity check.", "sane index", {})

    # The rest

    def _txn_index(self, path: str, file: SegmentFile) -> None:
        index = TxnIndex(read_only_file(path), is_created=True)
        try:
            index.check(file.base_offset)
            for aborted in index:
                self.output.row("aborted transaction", aborted_fields(aborted))
        except DamagedIndex as error:
            self.problems.add(str(error))
        self.advance(index.file.size)

    def _snapshot(self, path: str, file: SegmentFile) -> None:
        with open(path, "rb") as snapshot:
            content = snapshot.read()
        try:
            for entry in decode_snapshot(content):
                self.output.row("producer", producer_fields(entry))
        except CorruptSnapshot as error:
            self.problems.add(f"{path}: {error}")
        self.advance(len(content))


def _open_segment(path: str, file: SegmentFile) -> Segment:
    """The segment that an index belongs to; FileNotFoundError if its log is not beside it."""
    folder = os.path.dirname(path) or "."
    names = {kind: segment_filename(file.base_offset, kind, file.state) for kind in filenames.SEGMENT_KINDS}
    paths = {kind: os.path.join(folder, name) for kind, name in names.items()}
    sizes = {
        kind: os.stat(p).st_size for kind, p in paths.items() if kind == filenames.LOG or os.path.exists(p)
    }
    return Segment(
        read_only_directory(folder),
        file.base_offset,
        index_interval_bytes=0,
        created_ms=0,
        sizes=sizes,
        state=file.state,
    )


def _span_at(segment: Segment, position: int) -> BatchSpan | None:
    try:
        return segment.span_at(position) if 0 <= position < segment.size else None
    except RecordsError:
        return None


def _time_problem(segment: Segment, entry: TimestampOffset, previous_ms: int) -> str | None:
    """What Kafka's dump finds wrong with an entry: no batch ends there, another time, or out of order."""
    try:
        position = segment.position_of(entry.offset)
        span = segment.span_at(position) if position is not None else None
        if span is None or span.last_offset != entry.offset:
            return f"Indexed offset: {entry.offset}, found log offset: {span.last_offset if span else -1}"
        records = read_records(segment.batch_at(span), max_bytes=MAX_DECOMPRESSED_BYTES)
    except RecordsError as error:
        return f"Indexed offset: {entry.offset}: {error}"
    greatest_ms = max((record.timestamp_ms for record in records), default=-1)
    if greatest_ms != entry.timestamp_ms:
        return f"Index timestamp: {entry.timestamp_ms}, log timestamp: {greatest_ms}"
    if previous_ms >= entry.timestamp_ms:
        return f"Index timestamp: {entry.timestamp_ms}, Previously indexed timestamp: {previous_ms}"
    return None


def size_of(path: str, options: DumpOptions) -> int:
    """The approximate number of bytes that dumping a file reads."""
    return min(os.stat(path).st_size, options.max_bytes)
