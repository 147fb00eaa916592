"""Reads one partition once, from start to end, and passes every batch to every check."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from odradek.log import filenames
from odradek.log.leader_epochs import EpochEntry
from odradek.log.offline.read_only import MAX_DECOMPRESSED_BYTES, PartitionFiles, read_only_file
from odradek.log.offline.verify import side_files
from odradek.log.offline.verify.finding import Damage, LogFinding, Report
from odradek.log.offline.verify.indexes import OffsetIndexCheck, Problem, TimeIndexCheck
from odradek.log.offline.verify.order import EpochOrder, OffsetOrder
from odradek.log.offline.verify.transactions import TransactionCheck
from odradek.log.partition.producer_replay import marker_of
from odradek.log.producers.producer_snapshots import CorruptSnapshot, decode_snapshot
from odradek.log.segment.batch_chunks import BatchChunk, batch_chunks, is_only_room
from odradek.records.batch import BatchHeader
from odradek.records.errors import RecordsError
from odradek.records.record import read_records
from odradek.records.validate import validate_for_log


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the log directory says of a partition; None where it says nothing."""

    log_start_offset: int | None = None
    is_compacted: bool = False  # the cleaner has a checkpoint for it


@dataclass(slots=True)
class PartitionSummary:
    """What a partition was found to hold; `log_end_offset` is None if its end could not be read."""

    log_start_offset: int = 0
    log_end_offset: int | None = None
    batch_count: int = 0
    topic_id: UUID | None = None


@dataclass(slots=True)
class _Batch:
    """The batch being checked, and its position in the buffer."""

    buffer: memoryview = field(default_factory=lambda: memoryview(b""))
    at: int = 0


def verify_partition(
    files: PartitionFiles, around: Surroundings, report: Report, advance: Callable[[int], None]
) -> PartitionSummary:
    """Check all files of a partition; `advance` is called with the bytes read."""
    return _Verifier(files, around, report, advance).run()


class _Verifier:
    """One run over one partition."""

    def __init__(
        self, files: PartitionFiles, around: Surroundings, report: Report, advance: Callable[[int], None]
    ) -> None:
        self.files = files
        self.around = around
        self.report = report
        self.advance = advance
        self.summary = PartitionSummary(files.base_offsets[0] if files.base_offsets else 0)
        self.epoch_entries = self._read_epochs()
        self.summary.log_start_offset = self._log_start_offset()
        self.offsets = OffsetOrder()
        self.epochs = EpochOrder(self.epoch_entries, self.summary.log_start_offset)
        self.transactions = TransactionCheck(is_complete=self.summary.log_start_offset == 0)
        self.unmatched_snapshots = set(files.snapshots)
        self.has_epochs = self.has_epoch_problem = False
        self.is_sound = True
        self.batch = _Batch()
        self.last_header: BatchHeader | None = None

    def run(self) -> PartitionSummary:
        """Everything, in the order of the log."""
        base_offsets = self.files.base_offsets
        self._check_completeness()
        for number, base_offset in enumerate(base_offsets, 1):
            self._segment(base_offset, base_offsets[number] if number < len(base_offsets) else None)
        if base_offsets and self.is_sound:
            self._check_last_batch(self.files.join(base_offsets[-1], filenames.LOG))
            self.summary.log_end_offset = max(self.offsets.next_offset, base_offsets[-1])
        self._check_snapshots()
        self._check_epochs_end()
        self.summary.topic_id = self._read_topic_id()
        return self.summary

    @property
    def _epochs_path(self) -> str:
        return os.path.join(self.files.path, filenames.LEADER_EPOCH_CHECKPOINT)

    def _report(self, path: str, position: int | None, problem: str, kind: Damage) -> None:
        self.report(LogFinding(path, position, problem, kind))

    def _report_all(self, path: str, problems: list[Problem], kind: Damage) -> None:
        for position, problem in problems:
            self._report(path, position, problem, kind)

    # Segments

    def _segment(self, base_offset: int, limit: int | None) -> None:
        self.offsets.enter_segment(base_offset, limit)
        txn_path = self.files.join(base_offset, filenames.TXN_INDEX)
        self.transactions.enter_segment(_content(txn_path) or b"")
        self.is_sound = True
        offset_check, time_check = self._index_checks(base_offset, is_active=limit is None)
        for position, header in self._good_batches(base_offset, is_active=limit is None):
            if offset_check is not None:
                offset_check.add_batch(position, header)
            if time_check is not None:
                time_check.add_batch(position, header)
            if header.has_producer_id:
                self._add_to_transaction(header)
            if header.next_offset in self.unmatched_snapshots:
                self.unmatched_snapshots.remove(header.next_offset)
        if not self.is_sound:
            # Indexes are compared with the log; if that is damaged, all of them would seem wrong.
            self.transactions.lose_track()
            self.offsets.skip_to(limit if limit is not None else self.offsets.next_offset)
            return
        for check in (offset_check, time_check):
            if check is not None:
                self._report_all(check.file.path, check.finish(), Damage.INDEX)
        self._report_all(txn_path, self.transactions.finish_segment(), Damage.INDEX)

    def _index_checks(
        self, base_offset: int, *, is_active: bool
    ) -> tuple[OffsetIndexCheck | None, TimeIndexCheck | None]:
        sizes = self.files.segments[base_offset]
        offset_check = time_check = None
        if filenames.OFFSET_INDEX in sizes:
            path = self.files.join(base_offset, filenames.OFFSET_INDEX)
            offset_check = OffsetIndexCheck(path, base_offset, is_active=is_active)
        if filenames.TIME_INDEX in sizes:
            path = self.files.join(base_offset, filenames.TIME_INDEX)
            time_check = TimeIndexCheck(
                path, base_offset, is_active=is_active, first_offset_with=self._first_offset_with
            )
        self.advance(sum(size for kind, size in sizes.items() if kind != filenames.LOG))
        return offset_check, time_check

    def _good_batches(self, base_offset: int, *, is_active: bool) -> Iterator[tuple[int, BatchHeader]]:
        """The batches of a segment that nothing is wrong with, by their position; the others are reported."""
        path = self.files.join(base_offset, filenames.LOG)
        log = read_only_file(path)
        done = 0
        for chunk in batch_chunks(log):
            for index in range(chunk.scan.count):
                self.batch = _Batch(chunk.buffer, chunk.position(index))
                position = chunk.start + self.batch.at
                header = self._check_batch(path, position, chunk, index)
                if header is not None:
                    yield position, header
            self.advance(chunk.end_position - done)
            done = chunk.end_position
            if chunk.problem is not None and not (is_active and is_only_room(log, done)):
                kind = Damage.TAIL if is_active else Damage.BATCH
                self._damage(path, chunk.end_position, chunk.problem, kind)

    def _check_batch(self, path: str, position: int, chunk: BatchChunk, index: int) -> BatchHeader | None:
        self.summary.batch_count += 1
        try:
            header = validate_for_log(
                chunk.buffer, self.batch.at, max_decompressed_bytes=MAX_DECOMPRESSED_BYTES
            )
        except RecordsError as error:
            base_offset = chunk.header(index).base_offset
            self._damage(path, position, f"batch at offset {base_offset}: {error.problem}", Damage.BATCH)
            return None
        fault = self.offsets.check(header, position)
        if fault is not None:
            self._damage(path, fault.position, fault.problem, Damage.BATCH)
        self._check_epoch(path, header, position)
        self.last_header = header
        return header

    def _check_epoch(self, path: str, header: BatchHeader, position: int) -> None:
        self.has_epochs = self.has_epochs or header.partition_leader_epoch >= 0
        fault = self.epochs.check(header, position)
        if fault is not None:
            self._damage(path, fault.position, fault.problem, Damage.BATCH)
        disagreement = self.epochs.compare(header)
        if disagreement is not None and not self.has_epoch_problem:
            # Once only: a wrong line in the checkpoint would show at every batch.
            self.has_epoch_problem = True
            problem = f"{os.path.basename(path)}, byte {position}: {disagreement}"
            self._report(self._epochs_path, None, problem, Damage.EPOCHS)

    def _damage(self, path: str, position: int | None, problem: str, kind: Damage) -> None:
        self.is_sound = False
        self._report(path, position, problem, kind)

    def _add_to_transaction(self, header: BatchHeader) -> None:
        if self.offsets.gap_count:
            self.transactions.is_complete = False
        marker = None
        if header.is_control:
            try:
                marker = marker_of(self.batch.buffer, self.batch.at)
            except RecordsError:
                return  # of a later version of Kafka, perhaps; its structure was checked
        self.transactions.add_batch(header, marker)

    def _first_offset_with(self, header: BatchHeader, position: int, timestamp_ms: int) -> int | None:
        records = read_records(self.batch.buffer, self.batch.at, max_bytes=MAX_DECOMPRESSED_BYTES)
        return next((record.offset for record in records if record.timestamp_ms == timestamp_ms), None)

    # What can only be said at the end

    def _check_last_batch(self, path: str) -> None:
        """A wrong base offset or epoch shows at the next batch, but the last one has none after it."""
        if self.offsets.jumped and self.offsets.gap_count == 1 and not self.around.is_compacted:
            last_offset = self.offsets.next_offset - 1
            problem = f"the last batch, up to offset {last_offset}, leaves the log its only gap"
            self._report(path, self.offsets.last_position, problem, Damage.BATCH)
        fault = self.epochs.check_last(self.last_header) if self.last_header is not None else None
        if fault is not None:
            self._report(path, fault.position, fault.problem, Damage.BATCH)

    def _check_completeness(self) -> None:
        for base_offset, sizes in sorted(self.files.segments.items()):
            if filenames.LOG not in sizes:
                for kind in sizes:
                    path = self.files.join(base_offset, kind)
                    self._report(path, None, "its log file is missing", Damage.LOST)
                continue
            for kind in (filenames.OFFSET_INDEX, filenames.TIME_INDEX):
                if kind not in sizes:
                    self._report(self.files.join(base_offset, kind), None, "it is missing", Damage.INDEX)

    def _check_snapshots(self) -> None:
        active = self.files.base_offsets[-1] if self.files.base_offsets else 0
        for offset in self.files.snapshots:
            path = self.files.join(offset, filenames.SNAPSHOT)
            try:
                decode_snapshot(_content(path) or b"")
            except CorruptSnapshot as error:
                self._report(path, None, str(error), Damage.SNAPSHOT)
            # Kafka takes snapshots where a segment begins, and at the end of the log when it stops.
            if (
                offset > active
                and self.summary.log_end_offset is not None
                and offset in self.unmatched_snapshots
            ):
                problem = (
                    f"no batch ends before offset {offset}; either the snapshot or the last batch is wrong"
                )
                self._report(path, None, problem, Damage.SNAPSHOT)

    def _check_epochs_end(self) -> None:
        if self.has_epochs and not os.path.exists(self._epochs_path):
            self._report(self._epochs_path, None, "it is missing", Damage.EPOCHS)
        end = self.summary.log_end_offset
        for entry in self.epoch_entries or ():
            if end is not None and entry.start_offset > end:
                problem = f"epoch {entry.epoch} begins after the end of the log, {end}"
                self._report(self._epochs_path, None, problem, Damage.EPOCHS)

    # Small files

    def _read_epochs(self) -> list[EpochEntry] | None:
        content = _content(self._epochs_path)
        if content is None:
            return None
        try:
            return side_files.read_epochs(content)
        except side_files.Damaged as error:
            self._report(self._epochs_path, error.position, str(error), Damage.EPOCHS)
            return None

    def _log_start_offset(self) -> int:
        first = self.files.base_offsets[0] if self.files.base_offsets else 0
        if self.around.log_start_offset is not None:
            return max(first, self.around.log_start_offset)
        # Without a checkpoint the oldest epoch shows it: it begins with the log.
        return max(first, self.epoch_entries[0].start_offset) if self.epoch_entries else first

    def _read_topic_id(self) -> UUID | None:
        path = os.path.join(self.files.path, filenames.PARTITION_METADATA)
        content = _content(path)
        if content is None:
            return None
        try:
            return side_files.read_topic_id(content)
        except side_files.Damaged as error:
            self._report(path, error.position, str(error), Damage.LOST)
            return None


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
