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
"""Work on files that is decided and may block."""


@dataclass(slots=True)
class LoadReport:
    """What a start has found, beside the logs that serve."""

    corrupted: dict[TopicPartition, LogCorrupted] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)
    unfinished_moves: dict[TopicPartition, LogDirectory] = field(default_factory=dict)


class LogManager:
    """All partitions on this broker; owned by the event loop.

    `start` and `stop` block and run before and after it. A StorageError that is not `is_no_space` must be
    reported by `fail_directory`; the partitions there go, the other directories keep serving.
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
        self._homes: dict[TopicPartition, LogDirectory] = {}
        # What the checkpoints said of partitions that do not serve; it must not be forgotten.
        self._retained: dict[TopicPartition, Checkpoints] = {}
        self._leaving = DirectoryDeletion(self.files)
        self._unfinished_copies: list[tuple[TopicPartition, LogDirectory, str]] = []
        self.moves: dict[TopicPartition, LogMove] = {}
        # Where partitions that are not here yet shall go, by the word of an administrator.
        self.preferred_directories: dict[TopicPartition, str] = {}

    # Start and stop

    def start(self, now_ms: int, config_of: Callable[[str], LogConfig]) -> LoadReport:
        """Lock, check and load every directory; blocks. `config_of` a topic gives the settings of its logs.

        A directory that fails is offline; UnusableDirectory if all do. DirectoryLocked and
        InconsistentMetaProperties end the start: nothing was touched then.
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
        """Moves were under way at the last stop: their copies go if the logs are here, and are made anew."""
        for partition, directory, path in self._unfinished_copies:
            if partition not in self.logs:
                self.report.set_aside.append(path)  # it may be all that there is
                continue
            self._leaving.add(path, now_ms)
            if directory is not self._homes[partition]:
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
                self._homes[partition] = directory
            except OSError as error:
                self.fail_directory(directory, error)
            else:
                self._admit(log, directory)
        if directory.failure is not None:
            self._drop_logs_of(directory)

    def _admit(self, log: PartitionLog, directory: LogDirectory) -> None:
        """Of a partition that lies in two directories the longer serves; the other is set aside."""
        other = self.logs.get(log.partition)
        if other is not None:
            log, shorter = (log, other) if log.log_end_offset > other.log_end_offset else (other, log)
            logger.error("%s lies in two directories; %s is set aside", log.partition, shorter.directory.path)
            self._set_aside(shorter.partition, shorter.directory.path)
            directory = directory if log is not other else self._homes[log.partition]
        self.logs[log.partition] = log
        self._homes[log.partition] = directory

    def stop(self, now_ms: int, broker_epoch: int = -1) -> None:
        """Close every log in order and leave the clean mark; blocks."""
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
        """Let go of locks and files without a clean stop."""
        for log in self.logs.values():
            log.release()
        for directory in self.directories:
            directory.unlock()

    # Directories

    def online_directories(self) -> list[LogDirectory]:
        """The directories that serve, in the order of `log.dirs`."""
        return [directory for directory in self.directories if directory.failure is None]

    def directory_of(self, partition: TopicPartition) -> LogDirectory | None:
        """Where a partition lies, if it is on this broker."""
        return self._homes.get(partition)

    def logs_in(self, directory: LogDirectory) -> Iterator[PartitionLog]:
        """The logs that one directory serves."""
        return (log for tp, log in self.logs.items() if self._homes[tp] is directory)

    def fail_directory(self, directory: LogDirectory, error: OSError) -> list[TopicPartition]:
        """Take a directory offline; the partitions that stop serving with it."""
        if directory.failure is None:
            logger.error("%s has failed and is offline: %s", directory.path, error)
            directory.failure = error
        return self._drop_logs_of(directory)

    def _drop_logs_of(self, directory: LogDirectory) -> list[TopicPartition]:
        lost = [partition for partition, home in self._homes.items() if home is directory]
        for partition in lost:
            log = self.logs.pop(partition, None)
            if log is not None:
                log.release()
        return lost

    def report_failure(self, partition: TopicPartition, error: StorageError) -> list[TopicPartition]:
        """A log could not be written or read: if its disk is not merely full, take the directory offline."""
        home = self._homes.get(partition)
        if error.is_no_space or home is None:
            return []
        return self.fail_directory(home, OSError(error.errno, str(error)))

    def _check_any_online(self) -> None:
        if not self.online_directories():
            failed = self.directories[0]
            raise StorageError(failed.failure or OSError("offline"), failed.path)

    @contextlib.contextmanager
    def _offline_on_error(self, directory: LogDirectory) -> Iterator[None]:
        """An error of the disk costs this directory and no other."""
        try:
            yield
        except OSError as error:
            self.fail_directory(directory, error)
        except StorageError as error:
            self.fail_directory(directory, OSError(error.errno, str(error)))

    # Partitions

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """A log that serves."""
        return self.logs.get(partition)

    def get_or_create(
        self, partition: TopicPartition, config: LogConfig, *, now_ms: int, topic_id: UUID | None = None
    ) -> PartitionLog:
        """The partition's log, made in the directory with the fewest partitions if there is none; may block.

        LogCorrupted for one that is damaged: quarantine it first. StorageError if no directory can take it.
        """
        log = self.logs.get(partition)
        if log is not None:
            return log
        creation = self.begin_creation(partition, config, now_ms=now_ms, topic_id=topic_id)
        creation.run()
        return self.complete_creation(creation)

    def begin_creation(
        self, partition: TopicPartition, config: LogConfig, *, now_ms: int, topic_id: UUID | None = None
    ) -> Creation:
        """Choose a directory for a partition that has no log: the preferred one, or that with the fewest.

        Whoever may block calls `run`, then the owner of the logs `complete_creation`. Errors as of
        `get_or_create`.
        """
        if partition in self.report.corrupted:
            raise self.report.corrupted[partition]
        check_topic_name(partition.topic)
        self._check_any_online()
        home = self._homes.get(partition)
        if home is not None and home.failure is not None:
            raise StorageError(home.failure, home.path)
        directory = self._preferred(partition) or self._emptiest()
        # Taken from now on, so that the next of a hundred new partitions goes elsewhere.
        self._homes[partition] = directory

        def load(path: str) -> PartitionLog:
            return self._load(path, partition, config, NEW_PARTITION, now_ms)

        return Creation(partition, directory, topic_id, load)

    def complete_creation(self, creation: Creation) -> PartitionLog:
        """Have the new log serve; StorageError or LogCorrupted if it could not be made."""
        partition, directory, log = creation.partition, creation.directory, creation.log
        if isinstance(creation.error, LogCorrupted):
            self.report.corrupted[partition] = creation.error
            raise creation.error
        if creation.error is not None:
            raise StorageError(creation.error, directory.path)
        assert log is not None, "`run` comes first"
        if directory.failure is not None:
            log.release()
            raise StorageError(directory.failure, directory.path)
        self.preferred_directories.pop(partition, None)
        self._admit(log, directory)
        return log

    def prefer(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Have a partition made there when it comes; of many such words the oldest are forgotten."""
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
        for home in self._homes.values():
            if home in counts:
                counts[home] += 1
        return min(counts, key=lambda directory: counts[directory])

    def delete(self, partition: TopicPartition, *, now_ms: int) -> None:
        """Give up a partition whose topic was deleted; its files stay readable for `file.delete.delay.ms`."""
        self.begin_deletion(partition, now_ms=now_ms)()

    def begin_deletion(self, partition: TopicPartition, *, now_ms: int) -> Step:
        """Serve the partition no more; the step that renames its directory, where blocking is allowed.

        It must have been taken before the partition is made anew. StorageError if the disk fails.
        """
        log = self.logs.pop(partition, None)
        directory = self._homes.pop(partition, None)
        self.report.corrupted.pop(partition, None)
        self._retained.pop(partition, None)
        if directory is None or directory.failure is not None:
            return lambda: None
        if log is None and not self.files.exists(directory.join(str(partition))):
            return lambda: None  # it was to be made, and could not
        delay_ms = log.config.file_delete_delay_ms if log is not None else 0
        return lambda: self._leaving.give_up(
            partition, directory.join(str(partition)), log, now_ms + delay_ms
        )

    # From one directory to another

    def begin_move(self, partition: TopicPartition, directory: LogDirectory) -> LogMove:
        """There will be a copy of the log in that directory; `moving.py` has the steps from here on."""
        assert partition not in self.moves, "one move at a time"
        path = directory.join(marked_directory_name(partition, uuid4().hex, DirectoryState.FUTURE))
        move = self.moves[partition] = LogMove(self.logs[partition], directory, path, self.handles)
        return move

    def complete_move(self, move: LogMove, *, now_ms: int) -> Step:
        """Have the copy serve; the step that gives up the old directory, once the copy is synced.

        The one wait for the disk that the owner makes here spares us a worse one: what is appended from now
        on must not lie under a name that the next start takes for an unfinished copy. StorageError if the
        disk fails; then the old one serves on.
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
        self._homes[partition] = move.directory
        del self.moves[partition]
        due_ms = now_ms + source.config.file_delete_delay_ms
        return lambda: self._leaving.give_up(partition, source.directory.path, source, due_ms)

    def interrupt_move(self, move: LogMove) -> None:
        """Leave the copy where it is: the next start finds it and begins the move anew."""
        del self.moves[move.source.partition]
        if move.copy is not None:
            move.copy.release()

    def cancel_move(self, move: LogMove, *, now_ms: int) -> Step:
        """Give up the copy; the step that renames its directory, where blocking is allowed."""
        self.moves.pop(move.source.partition, None)
        if move.copy is not None:
            move.copy.release()
        if move.directory.failure is not None or not self.files.exists(move.path):
            return lambda: None
        return lambda: self._leaving.give_up(move.source.partition, move.path, move.copy, now_ms)

    def quarantine(self, partition: TopicPartition) -> str:
        """Set a damaged partition aside so that it can be copied anew; where it is now."""
        del self.report.corrupted[partition]
        self._retained.pop(partition, None)
        directory = self._homes.pop(partition)
        return self._set_aside(partition, directory.join(str(partition)))

    def set_aside_strays(self, is_wanted: Callable[[PartitionLog], bool]) -> list[str]:
        """Rename the directories of partitions that this broker should not have; they are never deleted."""
        strays = [log for log in self.logs.values() if not is_wanted(log)]
        for log in strays:
            log.release()
            del self.logs[log.partition], self._homes[log.partition]
        return [self._set_aside(log.partition, log.directory.path) for log in strays]

    def begin_setting_aside(self, partition: TopicPartition) -> Callable[[], str]:
        """Serve a log no more; the step that renames its directory, where blocking is allowed.

        The step returns the new path, which is never deleted. It must have been taken before the partition is
        made anew. StorageError if the disk fails.
        """
        log = self.logs.pop(partition)
        del self._homes[partition]
        log.release()

        def rename() -> str:
            try:
                return self._set_aside(partition, log.directory.path)
            except OSError as error:
                raise StorageError(error, log.directory.path) from error

        return rename

    def _set_aside(self, partition: TopicPartition, path: str) -> str:
        moved = self._leaving.mark(partition, path, DirectoryState.STRAY)
        self.report.set_aside.append(moved)
        return moved

    # Work that comes round

    def checkpoints(self) -> list[CheckpointJob]:
        """The checkpoint files that have something new to say, at once."""
        return self._noted(self.online_directories()).jobs()

    def begin_checkpoints(self) -> CheckpointRound:
        """A round without logs so far: the owner notes each by `note_checkpoints`, in its own time."""
        return self._begin_checkpoints(self.online_directories())

    def note_checkpoints(self, log: PartitionLog, checkpoints: CheckpointRound) -> None:
        """Note where a log is, if it still serves."""
        if self.logs.get(log.partition) is log:
            checkpoints.note(log, self._homes[log.partition])

    def _begin_checkpoints(self, directories: list[LogDirectory]) -> CheckpointRound:
        checkpoints = CheckpointRound(directories)
        for partition, known in self._retained.items():
            home = self._homes.get(partition)
            if home is not None:
                checkpoints.retain(partition, known, home)
        return checkpoints

    def _noted(self, directories: list[LogDirectory]) -> CheckpointRound:
        checkpoints = self._begin_checkpoints(directories)
        for log in self.logs.values():
            self.note_checkpoints(log, checkpoints)
        return checkpoints

    def enforce_retention(self, now_ms: int) -> int:
        """Delete the segments of every log whose retention is over; how many went."""
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
        """Forget the producers of a log that were silent for `producer.id.expiration.ms`; how many went."""
        return log.producers.remove_expired(now_ms, self.config.producer_id_expiration_ms)

    def due_garbage(self, now_ms: int) -> list[str]:
        """Files and directories whose delay is over, for `remove_garbage`, where blocking is allowed."""
        due = [path for log in self.logs.values() for path in log.due_garbage(now_ms)]
        return due + self.due_directories(now_ms)

    def due_directories(self, now_ms: int) -> list[str]:
        """Of these, what partitions left that do not serve any more."""
        return self._leaving.due(now_ms)

    def remove_garbage(self, paths: Iterable[str]) -> None:
        """Remove files, and whole directories of deleted partitions; any thread, may block."""
        self._leaving.remove(paths)
