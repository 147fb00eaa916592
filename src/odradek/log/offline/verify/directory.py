"""Checks whole log directories: every partition, and the checkpoints beside them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from odradek.common.ids import TopicPartition
from odradek.log import filenames
from odradek.log.offline.read_only import (
    NotALog,
    find_deleted,
    find_partitions,
    find_strays,
    is_partition,
    list_partition,
)
from odradek.log.offline.verify import side_files
from odradek.log.offline.verify.finding import Damage, LogFinding, Report
from odradek.log.offline.verify.partition import PartitionSummary, Surroundings, verify_partition

OFFSET_CHECKPOINTS = (
    filenames.RECOVERY_POINT_CHECKPOINT,
    filenames.HIGH_WATERMARK_CHECKPOINT,
    filenames.LOG_START_CHECKPOINT,
    filenames.CLEANER_CHECKPOINT,
)

Offsets = dict[TopicPartition, tuple[int, int]]  # partition -> place in the file, offset


@dataclass(slots=True)
class Summary:
    """What was read."""

    partition_count: int = 0
    batch_count: int = 0
    finding_count: int = 0


def verify(path: str, report: Report, advance: Callable[[int], None] = lambda _: None) -> Summary:
    """Check a log directory or one partition and report every problem; NotALog if the path is neither."""
    summary = Summary()

    def counted(found: LogFinding) -> None:
        summary.finding_count += 1
        report(found)

    if is_partition(path):
        around = _Directory(os.path.dirname(os.path.abspath(path)), lambda _: None)
        _verify_one(path, around, summary, counted, advance)
        return summary
    directory = _Directory(path, counted)
    found = {}
    for partition_path in _partitions(path):
        partition, one = _verify_one(partition_path, directory, summary, counted, advance)
        found[partition] = one
    directory.check(found)
    for stray in find_strays(path):
        counted(LogFinding(stray, None, "a stray partition: kept, but not served by a broker", Damage.STRAY))
    return summary


def bytes_to_read(path: str) -> int:
    """About as many as `advance` will be called with."""
    paths = [path] if is_partition(path) else _partitions(path)
    return sum(sum(sizes.values()) for one in paths for sizes in list_partition(one).segments.values())


def _partitions(path: str) -> list[str]:
    """A directory without partitions is a log directory if it has an offset checkpoint or meta.properties."""
    try:
        return [one for one in find_partitions(path) if is_partition(one)]
    except NotALog:
        known = (*OFFSET_CHECKPOINTS, filenames.META_PROPERTIES)
        if find_strays(path) or any(os.path.exists(os.path.join(path, name)) for name in known):
            return []
        raise


def _verify_one(
    path: str, around: _Directory, summary: Summary, report: Report, advance: Callable[[int], None]
) -> tuple[TopicPartition, PartitionSummary]:
    files = list_partition(path)
    one = verify_partition(files, around.surroundings(files.partition), report, advance)
    summary.partition_count += 1
    summary.batch_count += one.batch_count
    return files.partition, one


class _Directory:
    """The files beside the partitions."""

    def __init__(self, path: str, report: Report) -> None:
        self.path = path
        self.report = report
        self.checkpoints = {name: self._read_offsets(name) for name in OFFSET_CHECKPOINTS}
        self.is_clean = os.path.exists(self._join(filenames.CLEAN_SHUTDOWN))
        self._check_form(filenames.META_PROPERTIES, side_files.check_meta_properties)
        self._check_form(filenames.CLEAN_SHUTDOWN, side_files.check_clean_shutdown)

    def surroundings(self, partition: TopicPartition) -> Surroundings:
        """What the checkpoints contain about one partition."""
        starts = self.checkpoints[filenames.LOG_START_CHECKPOINT]
        cleaned = self.checkpoints[filenames.CLEANER_CHECKPOINT] or {}
        start = None if starts is None else starts.get(partition, (0, 0))[1]
        return Surroundings(start, partition in cleaned)

    def check(self, found: dict[TopicPartition, PartitionSummary]) -> None:
        """Compare what the checkpoints say with what the partitions hold."""
        # A broker that runs writes its checkpoints some seconds after a partition was deleted.
        deleted = find_deleted(self.path) - found.keys()
        for name, offsets in self.checkpoints.items():
            for partition, (position, offset) in (offsets or {}).items():
                if partition in deleted:
                    continue
                problem = self._offset_problem(name, offset, found.get(partition))
                if problem is not None:
                    self._report(name, position, f"{partition}: {problem}", Damage.CHECKPOINT)
        self._check_topic_ids(found)

    def _offset_problem(self, name: str, offset: int, partition: PartitionSummary | None) -> str | None:
        if partition is None:
            return "there is no such partition here"
        end = partition.log_end_offset
        if end is None:
            return None
        if offset > end:
            return f"offset {offset} is beyond the end of the log, {end}"
        if name == filenames.RECOVERY_POINT_CHECKPOINT and self.is_clean and offset != end:
            return f"recovery point {offset}, but after a clean stop it is the end of the log, {end}"
        return None

    def _check_topic_ids(self, found: dict[TopicPartition, PartitionSummary]) -> None:
        ids: dict[str, tuple[TopicPartition, UUID]] = {}
        for partition, one in sorted(found.items()):
            if one.topic_id is None:
                continue
            first, topic_id = ids.setdefault(partition.topic, (partition, one.topic_id))
            if topic_id != one.topic_id:
                path = os.path.join(str(partition), filenames.PARTITION_METADATA)
                self._report(path, None, f"another topic id than {first} has", Damage.LOST)

    def _read_offsets(self, name: str) -> Offsets | None:
        """None if the file is missing or damaged."""
        try:
            with open(self._join(name), "rb") as file:
                lines = side_files.read_offsets(file.read())
        except FileNotFoundError:
            return None
        except side_files.Damaged as error:
            self._report(name, error.position, str(error), Damage.CHECKPOINT)
            return None
        return {partition: (position, offset) for position, partition, offset in lines}

    def _check_form(self, name: str, check: Callable[[bytes], None]) -> None:
        try:
            with open(self._join(name), "rb") as file:
                check(file.read())
        except FileNotFoundError:
            return
        except side_files.Damaged as error:
            self._report(name, error.position, str(error), Damage.LOST)

    def _report(self, name: str, position: int | None, problem: str, kind: Damage) -> None:
        self.report(LogFinding(self._join(name), position, problem, kind))

    def _join(self, name: str) -> str:
        return os.path.join(self.path, name)
