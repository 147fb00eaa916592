from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from log.directories.test_log_move import a_manager, append
from log.given_logs import NOW_MS
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.files.file_system import FileSystem
from odradek.log.files.log_file import PartitionDirectory
from odradek.log.files.page_cache import is_cached
from odradek.log.files.page_cache_state import READ_AHEAD_BYTES
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.partition.read_ahead import is_read_cached, notice_cached, read_ahead
from odradek.testing.faulty_files import FaultyFiles

ORDERS = TopicPartition("orders", 0)
BATCH = 300_000


class WatchedFiles(FaultyFiles):
    """Notes what is loaded."""

    __slots__ = ("loaded",)

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[int] = []

    def load_into_cache(self, file, position, length):
        self.loaded.append(length)
        super().load_into_cache(file, position, length)


@pytest.fixture
def files() -> WatchedFiles:
    return WatchedFiles()


@pytest.fixture
def log(tmp_path: Path, files: WatchedFiles):
    manager = a_manager(tmp_path, files)
    log = manager.get_or_create(ORDERS, LogConfig(segment_bytes=12 << 20), now_ms=NOW_MS)
    append(log, *(bytes(BATCH) for _ in range(100)))
    yield log
    manager.stop(NOW_MS)


def test_old_records_are_loaded_ahead_of_their_reader(log: PartitionLog, files: WatchedFiles) -> None:
    loads, offset = 0, 0
    while offset < log.log_end_offset - 1:
        if not is_read_cached(log, offset, 1 << 20):
            read_ahead(log, offset, 1 << 20)
            loads += 1
            assert is_read_cached(log, offset, 1 << 20)
        run = log.read(offset, 1 << 20).range
        offset += run.length // BATCH
    assert loads < 10
    assert max(files.loaded) <= READ_AHEAD_BYTES + (1 << 20)
    assert sum(files.loaded) >= 28_000_000


def test_a_single_read_loads_no_more_than_it_needs(log: PartitionLog, files: WatchedFiles) -> None:
    read_ahead(log, 50, 1 << 20)
    read_ahead(log, 10, 1 << 20)
    assert max(files.loaded) <= 1 << 20
    assert is_read_cached(log, 10, 1 << 20)
    assert not is_read_cached(log, 50, 1 << 20)


def test_a_batch_larger_than_the_limit_is_loaded_whole(log: PartitionLog, files: WatchedFiles) -> None:
    read_ahead(log, 3, 100)
    assert files.loaded[0] > BATCH
    assert is_read_cached(log, 3, 100)


def evict(path: Path) -> None:
    """Have nothing of a file in the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_what_the_kernel_has_in_memory_needs_no_thread(log: PartitionLog, files: WatchedFiles) -> None:
    looks, offset = 0, 0
    while offset < log.log_end_offset - 1:
        if not is_read_cached(log, offset, 1 << 20):
            assert notice_cached(log, offset, 1 << 20)
            looks += 1
        offset += log.read(offset, 1 << 20).range.length // BATCH
    assert files.loaded == []
    assert looks < 10


def test_what_the_kernel_must_fetch_is_left_to_a_thread(log: PartitionLog) -> None:
    segment = log.segments.first
    segment.write_pending()
    for file in (segment.log, segment.offset_index.file):
        assert not is_read_cached(log, 3, 1 << 20)
        evict(Path(file.path))
        assert not notice_cached(log, 3, 1 << 20)
        Path(file.path).read_bytes()
    assert notice_cached(log, 3, 1 << 20)
    assert is_read_cached(log, 3, 1 << 20)


def test_a_hole_in_the_cache_holds_up_only_who_needs_it(log: PartitionLog) -> None:
    first = log.segments.first
    first.write_pending()
    with Path(first.log.path).open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 6 << 20, 2 << 20, os.POSIX_FADV_DONTNEED)
    reads_that_wait = [
        offset
        for offset in range(0, 36, 3)
        if not is_read_cached(log, offset, 1 << 20) and not notice_cached(log, offset, 1 << 20)
    ]
    assert reads_that_wait == [18, 21, 24, 27]


def test_a_hole_in_the_cache_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(16 << 20))
    with path.open("rb") as file:
        fd = file.fileno()
        assert is_cached(fd, 0, 16 << 20)
        os.fsync(fd)
        os.posix_fadvise(fd, 4 << 20, 8 << 20, os.POSIX_FADV_DONTNEED)
        assert not is_cached(fd, 0, 16 << 20)
        assert not is_cached(fd, (8 << 20) + 5, 1)
        assert is_cached(fd, 0, 1 << 20)


def test_only_what_is_missing_is_brought_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(16 << 20))
    sent: list[int] = []
    sendfile = os.sendfile

    def watched_sendfile(out: int, source: int, offset: int, count: int) -> int:
        sent.append(count)
        return sendfile(out, source, offset, count)

    monkeypatch.setattr(os, "sendfile", watched_sendfile)
    files = FileSystem()
    file = files.open(str(path))
    files.sync(file)
    os.posix_fadvise(file.fd, 4 << 20, 2 << 20, os.POSIX_FADV_DONTNEED)
    assert not is_cached(file.fd, 0, 16 << 20)
    files.load_into_cache(file, 0, 16 << 20)
    assert is_cached(file.fd, 0, 16 << 20)
    assert sum(sent) < 8 << 20


def test_outside_of_the_log_there_is_nothing_to_wait_for(log: PartitionLog) -> None:
    assert is_read_cached(log, log.log_end_offset, 1 << 20)
    assert is_read_cached(log, 5000, 1 << 20)
    log.delete_records(20)
    assert is_read_cached(log, 10, 1 << 20)


def test_a_disk_error_is_left_to_the_read(log: PartitionLog, files: WatchedFiles) -> None:
    log.release()
    files.fault = lambda call, path: errno.EIO if call == "read_at" else 0
    read_ahead(log, 0, 1 << 20)
    assert not is_read_cached(log, 0, 1 << 20)
    assert not notice_cached(log, 0, 1 << 20)
    files.fault = lambda call, path: 0


def test_a_file_that_is_renamed_at_that_moment_is_looked_for_again(log: PartitionLog) -> None:
    """The thread has taken the name of a file; then its owner renames it; then the thread opens it."""
    segment = log.segments.first
    segment.close()
    real = segment.log.directory
    opened: list[str] = []

    class Renaming(PartitionDirectory):
        """A directory whose first answer about a path is outdated when it is used."""

        def join(self, name: str) -> str:
            opened.append(name)
            return real.join(name if len(opened) > 1 else name + ".gone")

    segment.log.directory = Renaming(real.path, real.handles)
    read_ahead(log, 0, 1 << 20)
    segment.log.directory = real
    assert len(opened) > 1
    assert is_read_cached(log, 0, 1 << 20)
