"""One round of offset checkpoints: logs are added one by one, then the files are written.

Adding a log takes a microsecond or two, and the rest is one join per file, so that a broker with thousands of
logs can do other work in between.
"""

from __future__ import annotations

from odradek.common.ids import TopicPartition
from odradek.log import filenames
from odradek.log.checkpoints import encode_offset_lines, offset_line
from odradek.log.directories.log_directory import CheckpointJob, LogDirectory
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.recovery.log_loader import Checkpoints


class CheckpointRound:
    """The new contents of the checkpoint files; used for one round."""

    def __init__(self, directories: list[LogDirectory]) -> None:
        self._pages = {directory: _CheckpointFile() for directory in directories}

    def note(self, log: PartitionLog, directory: LogDirectory) -> None:
        """Add the current offsets of a log; ignored if the directory is offline."""
        page = self._pages.get(directory)
        if page is None:
            return
        page.recovery_points.append(offset_line(log.partition, log.recovery_point))
        page.high_watermarks.append(offset_line(log.partition, log.high_watermark))
        if log.log_start_offset > log.segments.first.base_offset:
            page.log_starts.append(offset_line(log.partition, log.log_start_offset))

    def retain(self, partition: TopicPartition, known: Checkpoints, directory: LogDirectory) -> None:
        """Keep the offsets of a partition that is not served."""
        page = self._pages.get(directory)
        if page is None:
            return
        page.recovery_points.append(offset_line(partition, known.recovery_point))
        page.high_watermarks.append(offset_line(partition, known.high_watermark))
        page.log_starts.append(offset_line(partition, known.log_start_offset))

    def jobs(self) -> list[CheckpointJob]:
        """The files that have changed; run the jobs where blocking is allowed.

        The others are not written: each file costs two syncs and a thread switch.
        """
        return [job for job in self.all_jobs() if job.is_needed]

    def all_jobs(self) -> list[CheckpointJob]:
        """Every file."""
        return [
            CheckpointJob(directory, name, encode_offset_lines(lines))
            for directory, page in self._pages.items()
            for name, lines in (
                (filenames.RECOVERY_POINT_CHECKPOINT, page.recovery_points),
                (filenames.HIGH_WATERMARK_CHECKPOINT, page.high_watermarks),
                (filenames.LOG_START_CHECKPOINT, page.log_starts),
            )
        ]


class _CheckpointFile:
    """The lines of one directory."""

    __slots__ = ("high_watermarks", "log_starts", "recovery_points")

    def __init__(self) -> None:
        self.recovery_points: list[str] = []
        self.high_watermarks: list[str] = []
        self.log_starts: list[str] = []
