"""Every log of a broker over its `log.dirs`: loading, placement, checkpoints, retention, a failed disk."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from odradek.common.ids import TopicPartition, check_topic_name
from odradek.log.config import LogConfig
from odradek.log.directories.checkpoint_round import CheckpointRound
from odradek.log.directories.creation import Creation
from odradek.log.directories.directory_deletion import DirectoryDeletion
from odradek.log.directories.log_dir_errors import UnusableDirectory, check_different
from odradek.log.directories.log_directory import CheckpointJob, LogDirectory
from odradek.log.directories.log_move import LogMove
from odradek.log.directories.manager_config import DEFAULTS, LogManagerConfig
from odradek.log.errors import LogCorrupted, StorageError
from odradek.log.filenames import DirectoryState, marked_directory_name
from odradek.log.files.file_system import FileSystem
from odradek.log.files.log_file import HandleCache, default_handle_limit
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.recovery.log_loader import NEW_PARTITION, Checkpoints, load_log

logger = logging.getLogger(__name__)


MAX_PREFERRED = 10_000


Step = Callable[[], None]
"""Work on files that may block."""


@dataclass(slots=True)
class LoadReport:
    """What was found at startup, beside the logs that are served."""

    corrupted: dict[TopicPartition, LogCorrupted] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)
    unfinished_moves: dict[TopicPartition, LogDirectory] = field(default_factory=dict)


class LogManager:
    """All partitions on this broker; owned by the event loop.

    `start` and `stop` block and run before and after it. A StorageError that is not `is_no_space` must be
    reported with `fail_directory`; its partitions go offline, the other directories keep serving.
    """

    def __init__(
        self,
        log_dirs: Sequence[str],
        *,
        broker_id: int,
        cluster_id: str,
        config: LogManagerConfig = DEFAULTS,
        files: FileSystem | None = None,
        handle_limit: int | None = None,
    ) -> None:
        check_different(log_dirs)
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.config = config
        self.files = files or FileSystem()
        self.handles = HandleCache(self.files, handle_limit or default_handle_limit())
        self.directories = [LogDirectory(path, self.files) for path in log_dirs]
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.report = LoadReport()
        self._log_directories: dict[TopicPartition, LogDirectory] = {}
        # Checkpoints of partitions that are not served; they must be kept.
        self._retained: dict[TopicPartition, Checkpoints] = {}
        self._leaving = DirectoryDeletion(self.files)
        self._unfinished_copies: list[tuple[TopicPartition, LogDirectory, str]] = []
        self.moves: dict[TopicPartition, LogMove] = {}
        # Directories that an administrator chose for partitions that do not exist yet.
        self.preferred_directories: dict[TopicPartition, str] = {}

    # Start and stop

    def start(self, now_ms: int, config_of: Callable[[str], LogConfig]) -> LoadReport:
        """Lock, check and load every directory; blocks. `config_of` returns the settings of a topic's logs.

        A directory that fails is offline; UnusableDirectory if all do. DirectoryLocked and
        InconsistentMetaProperties abort the start before anything is changed.
        """
        for directory in self.directories:
            with self._offline_on_error(directory):
                directory.lock()
        for directory in self.online_directories():
            with self._offline_on_error(directory):
                directory.claim(self.broker_id, self.cluster_id, uuid4())
        pools = [(d, self._start_loading(d, now_ms, config_of)) for d in self.online_directories()]
        for directory, loading in pools:
            self._finish_loading(directory, loading, now_ms)
        if not self.online_directories():
            first = self.directories[0]
            raise UnusableDirectory(first.path, first.failure or OSError("offline"))
        self._give_up_copies(now_ms)
        if self.report.set_aside:
            logger.warning(
                "Strays, kept from earlier and not served: %s. `odradek log dump DIRECTORY` shows their "
                "records; remove those that are not needed.",
                ", ".join(self.report.set_aside),
            )
        return self.report

    def _give_up_copies(self, now_ms: int) -> None:
        """Discard the copies of interrupted moves if the logs exist; the moves start over."""
        for partition, directory, path in self._unfinished_copies:
            if partition not in self.logs:
                self.report.set_aside.append(path)  # it may be the only copy
                continue
            self._leaving.add(path, now_ms)
            if directory is not self._log_directories[partition]:
                self.report.unfinished_moves[partition] = directory

    def _start_loading(
        self, directory: LogDirectory, now_ms: int, config_of: Callable[[str], LogConfig]
    ) -> dict[TopicPartition, tuple[Checkpoints, Future[PartitionLog]]]:
        loading: dict[TopicPartition, tuple[Checkpoints, Future[PartitionLog]]] = {}
        with self._offline_on_error(directory):
            checkpoints = directory.read_checkpoints()
            listing = directory.list()
            self.report.unknown += [directory.join(name) for name in listing.unknown]
            pool = ThreadPoolExecutor(
                self.config.num_recovery_threads_per_data_dir, thread_name_prefix="log-recovery"
            )
            for name, (partition, state) in listing.partitions.items():
                if state is DirectoryState.DELETE:
                    self._leaving.add(directory.join(name), now_ms)
                elif state is DirectoryState.FUTURE:
                    self._unfinished_copies.append((partition, directory, directory.join(name)))
                elif state is DirectoryState.LIVE:
                    known = checkpoints.get(partition, NEW_PARTITION)
                    config = config_of(partition.topic)
                    job = pool.submit(self._load, directory.join(name), partition, config, known, now_ms)
                    loading[partition] = (known, job)
                else:
                    self.report.set_aside.append(directory.join(name))
            pool.shutdown(wait=False)
        return loading

    def _load(
        self,
        path: str,
        partition: TopicPartition,
        config: LogConfig,
        checkpoints: Checkpoints,
        now_ms: int,
    ) -> PartitionLog:
        return load_log(
            partition,
            path,
            config,
            self.handles,
            now_ms=now_ms,
            checkpoints=checkpoints,
            producer_id_expiration_ms=self.config.producer_id_expiration_ms,
        )

    def _finish_loading(
        self,
        directory: LogDirectory,
        loading: dict[TopicPartition, tuple[Checkpoints, Future[PartitionLog]]],
        now_ms: int,
    ) -> None:
        for partition, (checkpoints, job) in loading.items():
            try:
                log = job.result()
            except LogCorrupted as corrupted:
                logger.error("%s is offline: %s", partition, corrupted)
                self.report.corrupted[partition] = corrupted
                self._retained[partition] = checkpoints
                self._log_directories[partition] = directory
            except OSError as error:
                self.fail_directory(directory, error)
            else:
                self._admit(log, directory)
        if directory.failure is not None:
            self._drop_logs_of(directory)

    def _admit(self, log: PartitionLog, directory: LogDirectory) -> None:
        """If a partition is in two directories, the longer log is served; the other one is set aside."""
        other = self.logs.get(log.partition)
        if other is not None:
            log, shorter = (log, other) if log.log_end_offset > other.log_end_offset else (other, log)
            logger.error("%s is in two directories; %s is set aside", log.partition, shorter.directory.path)
            self._set_aside(shorter.partition, shorter.directory.path)
            directory = directory if log is not other else self._log_directories[log.partition]
        self.logs[log.partition] = log
        self._log_directories[log.partition] = directory

    def stop(self, now_ms: int, broker_epoch: int = -1) -> None:
        """Close every log and write the clean mark; blocks."""
        for directory in self.online_directories():
            with self._offline_on_error(directory):
                mine = list(self.logs_in(directory))
                with ThreadPoolExecutor(self.config.num_recovery_threads_per_data_dir) as pool:
                    for job in [pool.submit(log.close, now_ms) for log in mine]:
                        job.result()
                for checkpoint in self._noted([directory]).all_jobs():
                    checkpoint.run()
                directory.mark_clean(broker_epoch)
        for directory in self.directories:
            directory.unlock()

    def abandon(self) -> None:
        """Release locks and files without a clean shutdown."""
        for log in self.logs.values():
            log.release()
        for directory in self.directories:
            directory.unlock()

    # Directories

    def online_directories(self) -> list[LogDirectory]:
        """The directories that are online, in the order of `log.dirs`."""
        return [directory for directory in self.directories if directory.failure is None]

    def directory_of(self, partition: TopicPartition) -> LogDirectory | None:
        """The directory of a partition, if it is on this broker."""
        return self._log_directories.get(partition)

    def logs_in(self, directory: LogDirectory) -> Iterator[PartitionLog]:
        """The logs of one directory that are served."""
        return (log for tp, log in self.logs.items() if self._log_directories[tp] is directory)

    def fail_directory(self, directory: LogDirectory, error: OSError) -> list[TopicPartition]:
        """Take a directory offline; the partitions that go offline with it."""
        if directory.failure is None:
            logger.error("%s has failed and is offline: %s", directory.path, error)
            directory.failure = error
        return self._drop_logs_of(directory)

    def _drop_logs_of(self, directory: LogDirectory) -> list[TopicPartition]:
        lost = [partition for partition, one in self._log_directories.items() if one is directory]
        for partition in lost:
            log = self.logs.pop(partition, None)
            if log is not None:
                log.release()
        return lost

    def report_failure(self, partition: TopicPartition, error: StorageError) -> list[TopicPartition]:
        """After a failed write or read of a log: take the directory offline unless its disk is full."""
        directory = self._log_directories.get(partition)
        if error.is_no_space or directory is None:
            return []
        return self.fail_directory(directory, OSError(error.errno, str(error)))

    def _check_any_online(self) -> None:
        if not self.online_directories():
            failed = self.directories[0]
            raise StorageError(failed.failure or OSError("offline"), failed.path)

    def _check_all_online(self) -> None:
        for directory in self.directories:
            if directory.failure is not None:
                raise StorageError(directory.failure, directory.path)

    @contextlib.contextmanager
    def _offline_on_error(self, directory: LogDirectory) -> Iterator[None]:
        """Take this directory offline on a disk error."""
        try:
            yield
        except OSError as error:
            self.fail_directory(directory, error)
        except StorageError as error:
            self.fail_directory(directory, OSError(error.errno, str(error)))

    # Partitions

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """A log that is served."""
        return self.logs.get(partition)

    def get_or_create(
        self, partition: TopicPartition, config: LogConfig, *, now_ms: int, topic_id: UUID | None = None
    ) -> PartitionLog:
        """The partition's log, created in the directory with the fewest partitions if needed; may block.

        LogCorrupted for a damaged one: see `begin_quarantine`. StorageError if no directory can hold it.
        """
        log = self.logs.get(partition)
        if log is not None:
            return log
        creation = self.begin_creation(partition, config, now_ms=now_ms, topic_id=topic_id)
        creation.run()
        return self.complete_creation(creation)

    def begin_creation(
        self,
        partition: TopicPartition,
        config: LogConfig,
        *,
        now_ms: int,
        topic_id: UUID | None = None,
        is_new: bool = True,
    ) -> Creation:
        """Choose a directory for a partition that has no log: the preferred one, or that with the fewest.

        Call `run` where blocking is allowed, then `complete_creation` on the loop. Errors as of
        `get_or_create`. With `is_new` False the log may be in a directory that is offline: StorageError if
        there is one, because an empty log in its place would lose its records.
        """
        if partition in self.report.corrupted:
            raise self.report.corrupted[partition]
        check_topic_name(partition.topic)
        self._check_any_online()
        directory = self._log_directories.get(partition)
        if directory is not None and directory.failure is not None:
            raise StorageError(directory.failure, directory.path)
        if not is_new:
            self._check_all_online()
        directory = self._preferred(partition) or self._emptiest()
        # Reserved from now on, so that the next of many new partitions gets another directory.
        self._log_directories[partition] = directory

        def load(path: str) -> PartitionLog:
            return self._load(path, partition, config, NEW_PARTITION, now_ms)

        return Creation(partition, directory, topic_id, load)

    def complete_creation(self, creation: Creation) -> PartitionLog:
        """Serve the new log; StorageError or LogCorrupted if it could not be created."""
        partition, directory, log = creation.partition, creation.directory, creation.log
        if isinstance(creation.error, LogCorrupted):
            self.report.corrupted[partition] = creation.error
            raise creation.error
        if creation.error is not None:
            raise StorageError(creation.error, directory.path)
        assert log is not None, "call `run` first"
        if directory.failure is not None:
            log.release()
            raise StorageError(directory.failure, directory.path)
        self.preferred_directories.pop(partition, None)
        self._admit(log, directory)
        return log

    def prefer(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Set the directory for a partition that does not exist yet; only the latest choices are kept."""
        self.preferred_directories.pop(partition, None)
        self.preferred_directories[partition] = directory.path
        if len(self.preferred_directories) > MAX_PREFERRED:
            del self.preferred_directories[next(iter(self.preferred_directories))]

    def _preferred(self, partition: TopicPartition) -> LogDirectory | None:
        path = self.preferred_directories.get(partition)
        return next((one for one in self.online_directories() if one.path == path), None)

    def _emptiest(self) -> LogDirectory:
        online = self.online_directories()
        counts = dict.fromkeys([one for one in online if not one.is_full] or online, 0)
        for directory in self._log_directories.values():
            if directory in counts:
                counts[directory] += 1
        return min(counts, key=lambda directory: counts[directory])

    def delete(self, partition: TopicPartition, *, now_ms: int) -> None:
        """Delete a partition whose topic was deleted; its files stay readable for `file.delete.delay.ms`."""
        self.begin_deletion(partition, now_ms=now_ms)()

    def begin_deletion(self, partition: TopicPartition, *, now_ms: int) -> Step:
        """Stop serving the partition; the step that renames its directory, where blocking is allowed.

        It must be done before the partition is created again. StorageError if the disk fails.
        """
        log = self.logs.pop(partition, None)
        directory = self._log_directories.pop(partition, None)
        self.report.corrupted.pop(partition, None)
        self._retained.pop(partition, None)
        if directory is None or directory.failure is not None:
            return lambda: None
        if log is None and not self.files.exists(directory.join(str(partition))):
            return lambda: None  # its creation failed
        delay_ms = log.config.file_delete_delay_ms if log is not None else 0
        return lambda: self._leaving.give_up(
            partition, directory.join(str(partition)), log, now_ms + delay_ms
        )

    # From one directory to another

    def begin_move(self, partition: TopicPartition, directory: LogDirectory) -> LogMove:
        """Begin a copy of the log in that directory; `log_move.py` has the next steps."""
        assert partition not in self.moves, "one move at a time"
        path = directory.join(marked_directory_name(partition, uuid4().hex, DirectoryState.FUTURE))
        move = self.moves[partition] = LogMove(self.logs[partition], directory, path, self.handles)
        return move

    def complete_move(self, move: LogMove, *, now_ms: int) -> Step:
        """Serve the copy; the step that deletes the old directory, once the copy is synced.

        This waits for the disk once: records appended from now on must not be in a directory whose name the
        next start takes for an unfinished copy. StorageError if the disk fails; then the old log is still
        served.
        """
        source, partition = move.source, move.source.partition
        live = move.directory.join(str(partition))
        try:
            self.files.rename(move.path, live)
            self.files.sync_directory(move.directory.path)
        except OSError as error:
            raise StorageError(error, move.path) from error
        copy = move.take_over()
        copy.directory.path = live
        self.logs[partition] = copy
        self._log_directories[partition] = move.directory
        del self.moves[partition]
        due_ms = now_ms + source.config.file_delete_delay_ms
        return lambda: self._leaving.give_up(partition, source.directory.path, source, due_ms)

    def interrupt_move(self, move: LogMove) -> None:
        """Keep the copy where it is: the next start finds it and begins the move again."""
        del self.moves[move.source.partition]
        if move.copy is not None:
            move.copy.release()

    def cancel_move(self, move: LogMove, *, now_ms: int) -> Step:
        """Discard the copy; the step that renames its directory, where blocking is allowed."""
        self.moves.pop(move.source.partition, None)
        if move.copy is not None:
            move.copy.release()
        if move.directory.failure is not None or not self.files.exists(move.path):
            return lambda: None
        return lambda: self._leaving.give_up(move.source.partition, move.path, move.copy, now_ms)

    def begin_quarantine(self, partition: TopicPartition) -> Callable[[], str]:
        """Give up a damaged log, to copy it from its leader; the step that renames its directory.

        The step returns the new path, which is never deleted. It must be done before the partition is created
        again. StorageError if the disk fails.
        """
        del self.report.corrupted[partition]
        self._retained.pop(partition, None)
        return self._renaming(partition, self._log_directories.pop(partition).join(str(partition)))

    def set_aside_strays(self, is_wanted: Callable[[PartitionLog], bool]) -> list[str]:
        """Rename the directories of partitions that this broker should not have; they are never deleted."""
        strays = [log for log in self.logs.values() if not is_wanted(log)]
        for log in strays:
            log.release()
            del self.logs[log.partition], self._log_directories[log.partition]
        return [self._set_aside(log.partition, log.directory.path) for log in strays]

    def begin_setting_aside(self, partition: TopicPartition) -> Callable[[], str]:
        """Stop serving a log; the step that renames its directory, where blocking is allowed.

        The step returns the new path, which is never deleted. It must be done before the partition is created
        again. StorageError if the disk fails.
        """
        log = self.logs.pop(partition)
        del self._log_directories[partition]
        log.release()
        return self._renaming(partition, log.directory.path)

    def _renaming(self, partition: TopicPartition, path: str) -> Callable[[], str]:
        def rename() -> str:
            try:
                return self._set_aside(partition, path)
            except OSError as error:
                raise StorageError(error, path) from error

        return rename

    def _set_aside(self, partition: TopicPartition, path: str) -> str:
        moved = self._leaving.mark(partition, path, DirectoryState.STRAY)
        self.report.set_aside.append(moved)
        return moved

    # Periodic work

    def checkpoints(self) -> list[CheckpointJob]:
        """The checkpoint files that have changed."""
        return self._noted(self.online_directories()).jobs()

    def begin_checkpoints(self) -> CheckpointRound:
        """An empty round: the caller adds each log with `note_checkpoints`."""
        return self._begin_checkpoints(self.online_directories())

    def note_checkpoints(self, log: PartitionLog, checkpoints: CheckpointRound) -> None:
        """Add the offsets of a log, if it is still served."""
        if self.logs.get(log.partition) is log:
            checkpoints.note(log, self._log_directories[log.partition])

    def _begin_checkpoints(self, directories: list[LogDirectory]) -> CheckpointRound:
        checkpoints = CheckpointRound(directories)
        for partition, known in self._retained.items():
            directory = self._log_directories.get(partition)
            if directory is not None:
                checkpoints.retain(partition, known, directory)
        return checkpoints

    def _noted(self, directories: list[LogDirectory]) -> CheckpointRound:
        checkpoints = self._begin_checkpoints(directories)
        for log in self.logs.values():
            self.note_checkpoints(log, checkpoints)
        return checkpoints

    def enforce_retention(self, now_ms: int) -> int:
        """Delete the segments of every log whose retention is over; how many were deleted."""
        return sum(self.enforce_retention_of(log, now_ms) for log in list(self.logs.values()))

    def enforce_retention_of(self, log: PartitionLog, now_ms: int) -> int:
        """The same for one log. Its directory goes offline if its disk fails."""
        try:
            deletion = log.enforce_retention(now_ms)
        except StorageError as error:
            self.report_failure(log.partition, error)
            return 0
        return deletion.segment_count if deletion is not None else 0

    def remove_expired_producers(self, log: PartitionLog, now_ms: int) -> int:
        """Remove the producers of a log that were idle for `producer.id.expiration.ms`; how many."""
        return log.producers.remove_expired(now_ms, self.config.producer_id_expiration_ms)

    def due_garbage(self, now_ms: int) -> list[str]:
        """Files and directories whose delay is over, for `remove_garbage`, where blocking is allowed."""
        due = [path for log in self.logs.values() for path in log.due_garbage(now_ms)]
        return due + self.due_directories(now_ms)

    def due_directories(self, now_ms: int) -> list[str]:
        """Of these, those of partitions that are not served any more."""
        return self._leaving.due(now_ms)

    def remove_garbage(self, paths: Iterable[str]) -> None:
        """Remove files, and whole directories of deleted partitions; any thread, may block."""
        self._leaving.remove(paths)
