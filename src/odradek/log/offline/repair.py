"""Cut a corrupt partition at its first bad batch, keep what is cut off, and rebuild derived files.

What is cut off stays in the directory under names that no broker reads, ours or Kafka's:

    00000000000000000042.log.from-8192.cut    the bytes of that log file from position 8192 on
    00000000000000000099.log.from-0.cut       a whole segment behind the cut

First everything is planned, and nothing touched; then everything is saved before anything is cut. The
caller holds the lock of the log directory. Files that a fork shares (hard links) are replaced, never changed.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field

from odradek.log import filenames
from odradek.log.checkpoints import decode_offsets, encode_offsets
from odradek.log.files.file_system import FileSystem
from odradek.log.files.log_file import HandleCache, PartitionDirectory
from odradek.log.leader_epochs import LeaderEpochs, decode_epochs
from odradek.log.offline.read_only import PartitionFiles, list_partition
from odradek.log.offline.verify.directory import verify
from odradek.log.offline.verify.finding import Damage, LogFinding
from odradek.log.partition.producer_replay import replay
from odradek.log.producers.producer_states import ProducerStates
from odradek.log.producers.snapshot_files import SnapshotFiles
from odradek.log.recovery.segment_scan import scan_segment
from odradek.log.segment.segment import Segment
from odradek.log.segment.segments import Segments

INDEX_INTERVAL_BYTES = 4096
_DERIVED = (filenames.OFFSET_INDEX, filenames.TIME_INDEX, filenames.TXN_INDEX)
_CHECKPOINTS = (
    filenames.RECOVERY_POINT_CHECKPOINT,
    filenames.HIGH_WATERMARK_CHECKPOINT,
    filenames.LOG_START_CHECKPOINT,
    filenames.CLEANER_CHECKPOINT,
)


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the log will end: the batch at `position` of a segment is the first that goes."""

    base_offset: int
    position: int
    problem: str


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What would be done to a partition; nothing has been yet."""

    files: PartitionFiles
    findings: list[LogFinding]
    cut: Cut | None
    rebuilt: list[int]  # base offsets of the segments that get new indexes
    rewrites_epochs: bool
    removed_snapshots: list[int]

    @property
    def later_segments(self) -> list[int]:
        """The segments behind the cut, which go whole."""
        return [base for base in self.files.base_offsets if self.cut and base > self.cut.base_offset]

    @property
    def bytes_cut(self) -> int:
        """Bytes of log that will be set aside."""
        if self.cut is None:
            return 0
        sizes = self.files.segments
        torn = sizes[self.cut.base_offset][filenames.LOG] - self.cut.position
        return torn + sum(sizes[base][filenames.LOG] for base in self.later_segments)

    @property
    def has_work(self) -> bool:
        """Whether anything would change."""
        return self.cut is not None or self.rewrites_epochs or bool(self.rebuilt or self.removed_snapshots)


@dataclass(slots=True)
class Repaired:
    """What was done."""

    log_end_offset: int
    saved: list[str] = field(default_factory=list)


def plan_repair(path: str) -> RepairPlan:
    """Read a partition's directory and decide; nothing is changed. NotALog if there is no segment in it."""
    files = list_partition(path)
    findings: list[LogFinding] = []
    verify(path, findings.append)
    damage = [found for found in findings if found.kind in (Damage.BATCH, Damage.TAIL)]
    cut = _first_cut(damage)
    by_kind = {
        kind: {_base_offset(f) for f in findings if f.kind is kind}
        for kind in (Damage.INDEX, Damage.SNAPSHOT)
    }
    rebuilt = {base for base in by_kind[Damage.INDEX] if base in files.base_offsets}
    if cut is not None:
        rebuilt = {base for base in rebuilt if base < cut.base_offset} | {cut.base_offset}
    return RepairPlan(
        files,
        findings,
        cut,
        sorted(rebuilt),
        rewrites_epochs=any(found.kind is Damage.EPOCHS for found in findings),
        removed_snapshots=sorted(by_kind[Damage.SNAPSHOT]),
    )


def _first_cut(damage: list[LogFinding]) -> Cut | None:
    places = [Cut(_base_offset(found), found.position or 0, found.problem) for found in damage]
    return min(places, key=lambda cut: (cut.base_offset, cut.position), default=None)


def _base_offset(found: LogFinding) -> int:
    return int(os.path.basename(found.path).partition(".")[0])


def apply_repair(plan: RepairPlan) -> Repaired:
    """Do what the plan says, synced step by step: a crash in between leaves too much, never too little."""
    return _Repair(plan).run()


class _Repair:
    """One repair; used only by `apply_repair`."""

    def __init__(self, plan: RepairPlan) -> None:
        self.plan = plan
        self.files = FileSystem()
        self.directory = PartitionDirectory(plan.files.path, HandleCache(self.files, 64))
        self.repaired = Repaired(0)

    def run(self) -> Repaired:
        """Save, cut, rebuild."""
        if self.plan.cut is not None:
            self._save(self.plan.cut)
            self._cut(self.plan.cut)
        for offset in self.plan.removed_snapshots:
            self._remove(offset, filenames.SNAPSHOT)
        for base_offset in self.plan.rebuilt:
            for kind in _DERIVED:
                self._remove(base_offset, kind)
        segments = self._open_segments()
        for base_offset in self.plan.rebuilt:
            self._rebuild(segments, base_offset)
        self.repaired.log_end_offset = segments.active.next_offset()
        self._settle_snapshots()
        self._settle_epochs(segments)
        self.files.sync_directory(self.directory.path)
        self._lower_checkpoints()
        return self.repaired

    # Cutting

    def _save(self, cut: Cut) -> None:
        source = self._path(cut.base_offset, filenames.LOG)
        self._copy(source, f"{source}.from-{cut.position}.cut", cut.position, None)

    def _cut(self, cut: Cut) -> None:
        # From the end backwards: a crash in between leaves a prefix, not a hole.
        for base_offset in reversed(self.plan.later_segments):
            source = self._path(base_offset, filenames.LOG)
            self.files.rename(source, f"{source}.from-0.cut")
            self.repaired.saved.append(f"{source}.from-0.cut")
            for kind in (*_DERIVED, filenames.SNAPSHOT):
                self._remove(base_offset, kind)
        path = self._path(cut.base_offset, filenames.LOG)
        if os.stat(path).st_nlink > 1:
            self._copy(path, path + ".tmp", 0, cut.position)
            self.files.rename(path + ".tmp", path)
        else:
            file = self.files.open(path)
            self.files.truncate(file, cut.position)
            self.files.sync(file)
        self.files.sync_directory(self.directory.path)

    def _copy(self, source: str, target: str, start: int, end: int | None) -> None:
        with open(source, "rb") as reader, open(target, "xb") as writer:
            reader.seek(start)
            shutil.copyfileobj(reader, writer, 1 << 20)
            if end is not None:
                writer.truncate(end)
            writer.flush()
            os.fsync(writer.fileno())
        self.files.sync_directory(self.directory.path)
        if target.endswith(".cut"):
            self.repaired.saved.insert(0, target)

    def _path(self, base_offset: int, kind: str) -> str:
        return self.plan.files.join(base_offset, kind)

    def _remove(self, base_offset: int, kind: str) -> None:
        self.files.remove(self._path(base_offset, kind))

    # Rebuilding

    def _open_segments(self) -> Segments:
        now = list_partition(self.directory.path)
        return Segments(
            Segment(
                self.directory,
                base,
                index_interval_bytes=INDEX_INTERVAL_BYTES,
                created_ms=0,
                sizes=now.segments[base],
            )
            for base in now.base_offsets
        )

    def _rebuild(self, segments: Segments, base_offset: int) -> None:
        """New indexes from the log, and from what its producers were doing when the segment began."""
        segment = segments.floor(base_offset)
        assert segment is not None
        producers = self._producers_at(segments, base_offset)
        scan = scan_segment(segment, checks_crc=False, producers=producers)
        segment.replace_indexes(scan.offset_entries, scan.time_entries, scan.greatest)
        segment.time_index.append_if_later(*scan.greatest)
        segment.write_pending()
        for aborted in scan.aborted:
            segment.append_aborted(aborted)
        for file in segment.files():
            file.sync()

    def _producers_at(self, segments: Segments, offset: int) -> ProducerStates:
        now = list_partition(self.directory.path)
        snapshots = SnapshotFiles(self.directory, now.snapshots)
        producers = snapshots.load(segments.first.base_offset, offset, now_ms=0, expiration_ms=2**62)
        replay(segments.from_offset(producers.end_offset), producers, offset)
        producers.end_offset = offset
        return producers

    # Everything that names the end of the log

    def _settle_snapshots(self) -> None:
        for offset in list_partition(self.directory.path).snapshots:
            if offset > self.repaired.log_end_offset:
                self._remove(offset, filenames.SNAPSHOT)

    def _settle_epochs(self, segments: Segments) -> None:
        path = os.path.join(self.directory.path, filenames.LEADER_EPOCH_CHECKPOINT)
        if self.plan.rewrites_epochs:
            epochs = LeaderEpochs()
            for segment in segments:
                for entry in scan_segment(segment, checks_crc=False).epochs:
                    epochs.assign(entry.epoch, entry.start_offset)
            self.files.write_file_atomically(path, epochs.encode())
            return
        if self.plan.cut is None or not self.files.exists(path):
            return
        epochs = LeaderEpochs(decode_epochs(self.files.read_file(path)))
        if epochs.truncate_from_end(self.repaired.log_end_offset):
            self.files.write_file_atomically(path, epochs.encode())

    def _lower_checkpoints(self) -> None:
        """Lower checkpointed offsets beyond the log end offset: a broker would take the log for damaged."""
        partition = self.plan.files.partition
        for name in _CHECKPOINTS:
            path = os.path.join(self.plan.files.log_directory, name)
            try:
                offsets = decode_offsets(self.files.read_file(path))
            except (FileNotFoundError, ValueError):
                continue
            if offsets.get(partition, 0) > self.repaired.log_end_offset:
                offsets[partition] = self.repaired.log_end_offset
                self.files.write_file_atomically(path, encode_offsets(offsets))
