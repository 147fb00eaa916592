"""Which logs are cleaned and when, and how far each is clean: the part of the cleaner on the event loop."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

from odradek.common.ids import TopicPartition
from odradek.log import filenames
from odradek.log.checkpoints import decode_offsets, encode_offsets
from odradek.log.cleaner.cleaning import Cleaning, Workspace, log_state
from odradek.log.cleaner.config import CleanerConfig
from odradek.log.cleaner.errors import CleaningAborted, UncleanableLog
from odradek.log.cleaner.filter.offset_map import OffsetMap
from odradek.log.cleaner.plan import LogToClean, dirtiest, log_to_clean, wants_cleaning
from odradek.log.cleaner.statistics import CleanerStatistics
from odradek.log.cleaner.throttle import CleanerThrottle
from odradek.log.errors import StorageError
from odradek.log.files.file_system import FileSystem
from odradek.log.partition.partition_log import PartitionLog

logger = logging.getLogger(__name__)

Step = Callable[[], Any]
Steps = Generator[Step, Any, "CleaningResult"]


class CleaningResult(NamedTuple):
    """The result of a run: its statistics, or why it failed."""

    partition: TopicPartition
    statistics: CleanerStatistics
    problem: str | None = None
    storage_error: StorageError | None = None  # for LogManager.report_failure


class CleanerManager:
    """The state of cleaning; owned by the event loop, like the logs.

    Notified by the broker when a log is truncated or removed. Reads `logs` again each time.
    """

    def __init__(
        self,
        config: CleanerConfig,
        files: FileSystem,
        logs: Mapping[TopicPartition, PartitionLog],
        *,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.config = config
        self.files = files
        self.logs = logs
        self.uncleanable: dict[TopicPartition, str] = {}
        self._running: dict[TopicPartition, Cleaning] = {}
        self._paused: dict[TopicPartition, int] = {}
        self._checkpoints: dict[str, dict[TopicPartition, int]] = {}  # by log directory
        self._checkpoint_lock = threading.Lock()
        self._workspaces = [
            Workspace(
                OffsetMap(config.dedupe_bytes_per_thread, config.log_cleaner_io_buffer_load_factor),
                CleanerThrottle(config.bytes_per_second_per_thread, clock, sleep),
                config.io_bytes_per_thread,
                clock,
            )
            for _ in range(config.log_cleaner_threads if config.runs else 0)
        ]

    # Choosing

    def targets(self, now_ms: int) -> list[tuple[PartitionLog, LogToClean]]:
        """Every log that may be cleaned now and needs it, with its dirty part."""
        found = []
        for partition, log in self.logs.items():
            if not log.config.is_compacted or partition in self.uncleanable:
                continue
            if partition in self._running or partition in self._paused:
                continue
            target = log_to_clean(log_state(log), self.checkpoint(log), now_ms)
            if wants_cleaning(target, log.config.min_cleanable_dirty_ratio):
                found.append((log, target))
        return found

    def begin(self, now_ms: int) -> Cleaning | None:
        """A run over the dirtiest log; None if no log needs one or all threads are busy."""
        if not self._workspaces:
            return None
        chosen = dirtiest(self.targets(now_ms))
        if chosen is None:
            return None
        log, target = chosen
        cleaning = Cleaning(log, target, self._workspaces.pop(), now_ms=now_ms)
        self._running[log.partition] = cleaning
        return cleaning

    # Running

    def steps(self, cleaning: Cleaning) -> Steps:
        """The whole run, as steps that the caller makes in a thread where blocking is allowed.

        The code between them runs here, where the logs are owned. Send the result of a step into the
        generator, or throw its exception in.
        """
        partition = cleaning.log.partition
        try:
            yield cleaning.build_map
            while (group := (yield cleaning.clean_next_group)) is not None:
                swap = cleaning.begin_swap(group, now_ms=cleaning.now_ms)
                yield cleaning.sync_directory
                for _ in swap:
                    yield cleaning.sync_directory
            # The log may have been removed during the last step, and its checkpoint with it.
            cleaning.check_not_aborted()
            yield self._move_checkpoint(cleaning.log, cleaning.end_offset)
        except CleaningAborted as error:
            return CleaningResult(partition, cleaning.statistics, str(error))
        except UncleanableLog as error:
            logger.error("%s is marked uncleanable: %s", partition, error)
            self.uncleanable[partition] = str(error)
            return CleaningResult(partition, cleaning.statistics, str(error))
        except (OSError, StorageError) as error:
            return self._storage_failed(cleaning, error)
        finally:
            self._end(cleaning)
        logger.info("%s: cleaned %s", partition, cleaning.statistics)
        return CleaningResult(partition, cleaning.statistics)

    def run(self, now_ms: int) -> CleaningResult | None:
        """Clean the dirtiest log in this thread; None if no log needs it. Blocks."""
        cleaning = self.begin(now_ms)
        if cleaning is None:
            return None
        steps = self.steps(cleaning)
        step = next(steps)
        try:
            while True:
                try:
                    answer = step()
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as stop:
            outcome: CleaningResult = stop.value
            return outcome

    def _storage_failed(self, cleaning: Cleaning, error: OSError | StorageError) -> CleaningResult:
        partition, path = cleaning.log.partition, cleaning.log.directory.path
        if self.logs.get(partition) is not cleaning.log:
            return CleaningResult(partition, cleaning.statistics, "the log was removed while it was cleaned")
        logger.error("%s: cleaning failed: %s", partition, error)
        storage_error = error if isinstance(error, StorageError) else StorageError(error, path)
        return CleaningResult(partition, cleaning.statistics, str(error), storage_error)

    def _end(self, cleaning: Cleaning) -> None:
        cleaning.workspace.offset_map.clear(max_keys=0)  # its memory goes back to the system
        self._workspaces.append(cleaning.workspace)
        del self._running[cleaning.log.partition]

    # What happens to logs meanwhile

    @property
    def running(self) -> list[TopicPartition]:
        """The logs that are being cleaned."""
        return list(self._running)

    def abort(self, partition: TopicPartition) -> None:
        """Abort a run, if there is one; the log is left as it is."""
        cleaning = self._running.get(partition)
        if cleaning is not None:
            cleaning.abort()

    def pause(self, partition: TopicPartition) -> None:
        """Abort a run, and start no other until `resume` was called as often."""
        self._paused[partition] = self._paused.get(partition, 0) + 1
        self.abort(partition)

    def resume(self, partition: TopicPartition) -> None:
        """Undo one `pause`."""
        left = self._paused.pop(partition) - 1
        if left:
            self._paused[partition] = left

    def truncated(self, log: PartitionLog) -> Step:
        """Called after a truncation: new records are dirty. Returns the step that writes the checkpoint."""
        self.abort(log.partition)
        if (self.checkpoint(log) or 0) > log.log_end_offset:
            return self._move_checkpoint(log, log.log_end_offset)
        return _nothing

    def removed(self, log: PartitionLog) -> Step:
        """Called when a log is removed or recreated. Returns the step that writes the checkpoint."""
        self.abort(log.partition)
        self.uncleanable.pop(log.partition, None)
        directory = _directory_of(log)
        if self._read_checkpoints(directory).pop(log.partition, None) is None:
            return _nothing
        return lambda: self._write_checkpoints(directory)

    def moved(self, log: PartitionLog, copy: PartitionLog) -> Step:
        """Called when a copy in another directory has replaced a log: it is as clean as the log was."""
        offset = self.checkpoint(log)
        steps = [self.removed(log)]
        if offset is not None:
            steps.append(self._move_checkpoint(copy, offset))
        return lambda: [step() for step in steps]

    def inherit(self, earlier: CleanerManager) -> None:
        """Continue with another manager's state: paused and uncleanable logs, and checkpoints."""
        self.uncleanable = earlier.uncleanable
        self._paused = earlier._paused
        self._checkpoints = earlier._checkpoints

    # Checkpoints

    def checkpoint(self, log: PartitionLog) -> int | None:
        """Up to where the log is clean; None if no run has got to its end."""
        return self._read_checkpoints(_directory_of(log)).get(log.partition)

    def _read_checkpoints(self, directory: str) -> dict[TopicPartition, int]:
        if directory not in self._checkpoints:
            path = f"{directory}/{filenames.CLEANER_CHECKPOINT}"
            try:
                offsets = decode_offsets(self.files.read_file(path))
            except FileNotFoundError:
                offsets = {}
            except ValueError as error:
                # Everything counts as dirty then: slower, but correct.
                logger.warning("%s is damaged and ignored: %s", path, error)
                offsets = {}
            self._checkpoints[directory] = offsets
        return self._checkpoints[directory]

    def _move_checkpoint(self, log: PartitionLog, offset: int) -> Step:
        """Record that a log is clean up to `offset`; the step that writes it."""
        directory = _directory_of(log)
        self._read_checkpoints(directory)[log.partition] = offset
        return lambda: self._write_checkpoints(directory)

    def _write_checkpoints(self, directory: str) -> None:
        path = f"{directory}/{filenames.CLEANER_CHECKPOINT}"
        # One thread writes at a time, and each writes the latest state.
        with self._checkpoint_lock:
            content = encode_offsets(self._checkpoints[directory].copy())
            self.files.write_file_atomically(path, content)


def _nothing() -> None:
    """The step if there is nothing to do."""


def _directory_of(log: PartitionLog) -> str:
    return os.path.dirname(log.directory.path)
