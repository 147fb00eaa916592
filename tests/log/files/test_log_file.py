from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from odradek.log.files.file_system import FileSystem
from odradek.log.files.log_file import HandleCache, LogFile, PartitionDirectory
from odradek.testing.faulty_files import Crashed, FaultyFiles


def a_directory(path: Path, files: FileSystem | None = None, limit: int = 2) -> PartitionDirectory:
    return PartitionDirectory(str(path), HandleCache(files or FileSystem(), limit))


def created(directory: PartitionDirectory, name: str) -> LogFile:
    file = LogFile(directory, name, 0)
    file.create()
    return file


def open_descriptors(directory: Path) -> int:
    """Descriptors of files in a directory, removed ones included; other tests may have theirs open."""
    targets = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            targets.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return sum(target.startswith(f"{directory}/") for target in targets)


def test_only_the_most_recently_used_files_stay_open(tmp_path: Path) -> None:
    directory = a_directory(tmp_path, limit=3)
    before = open_descriptors(tmp_path)
    files = [created(directory, f"{number}.log") for number in range(10)]
    assert open_descriptors(tmp_path) - before == 3
    for file in files:
        file.append(file.name.encode())
    assert [file.read(0, 10) for file in files] == [file.name.encode() for file in files]
    assert open_descriptors(tmp_path) - before == 3
    assert len(directory.handles) == 3


def test_a_range_stays_readable_when_its_file_is_closed_and_removed(tmp_path: Path) -> None:
    directory = a_directory(tmp_path)
    file = created(directory, "0.log")
    file.append(b"hello world")
    part = file.range(6, 5)
    file.close()
    os.unlink(file.path)
    assert part.read() == b"world"
    before = open_descriptors(tmp_path)
    del part
    assert open_descriptors(tmp_path) == before - 1


def test_an_append_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    files = FaultyFiles()
    file = created(a_directory(tmp_path, files), "0.log")
    file.append(b"whole")
    files.free_bytes = 3
    with pytest.raises(OSError, match="No space"):
        file.append(b"too much")
    assert (tmp_path / "0.log").read_bytes() == b"whole"
    files.free_bytes = None
    assert file.append(b"more") == 5
    assert (tmp_path / "0.log").read_bytes() == b"wholemore"


def test_a_small_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    for changes in range(6):
        path.write_bytes(b"old")
        files = FaultyFiles()
        files.crash_after(changes)
        try:
            files.write_file_atomically(str(path), b"new one")
        except Crashed:
            assert path.read_bytes() == b"old"
        else:
            assert path.read_bytes() == b"new one"
            assert files.synced == [str(path) + ".tmp", str(tmp_path)]
    assert path.read_bytes() == b"new one"


def test_a_failing_read_is_an_error_not_an_empty_answer(tmp_path: Path) -> None:
    files = FaultyFiles()
    file = created(a_directory(tmp_path, files), "0.log")
    file.append(b"hello")
    files.fault = lambda call, path: errno.EIO if call == "read_at" else 0
    with pytest.raises(OSError, match="Input/output"):
        file.read(0, 5)
