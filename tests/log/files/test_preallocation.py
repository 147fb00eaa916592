"""A growing log takes disk space ahead of its bytes, and gives back what it did not need."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from log.directories.test_log_move import a_manager, append
from log.files.test_log_file import a_directory, created
from log.given_logs import NOW_MS
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.files.file_system import FileSystem
from odradek.log.files.log_file import MAX_STEP_BYTES, STEPS_FROM_BYTES
from odradek.log.partition.partition_log import PartitionLog

ORDERS = TopicPartition("orders", 0)
PIECE = bytes(300_000)
PAGE_BYTES = 4096
SLACK_BYTES = 64 * 1024
"""What a file system needs for its own notes about a file, at most."""


class RefusingFiles(FileSystem):
    """A disk that has no step left, but room for an append."""

    def take_room(self, file, position, length):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def ahead_bytes(path: str) -> int:
    """What the file takes of its disk beyond its length."""
    known = os.stat(path)
    return known.st_blocks * 512 - known.st_size


def a_grown_log(path: Path) -> PartitionLog:
    log = a_manager(path).get_or_create(ORDERS, LogConfig(), now_ms=NOW_MS)
    while log.segments.active.size < 2 * STEPS_FROM_BYTES:
        append(log, PIECE)
    return log


def test_a_growing_file_has_room_ahead(tmp_path: Path) -> None:
    file = created(a_directory(tmp_path), "0.log")
    file.grow_in_steps()
    greatest = 0
    while file.size < 80_000_000:
        file.append(PIECE)
        greatest = max(greatest, ahead_bytes(file.path))
    assert MAX_STEP_BYTES - len(PIECE) <= greatest <= MAX_STEP_BYTES + SLACK_BYTES
    assert file.read(0, file.size) == PIECE * (file.size // len(PIECE))


def test_a_small_file_takes_nothing_ahead(tmp_path: Path) -> None:
    file = created(a_directory(tmp_path), "0.log")
    file.grow_in_steps()
    while file.size + len(PIECE) <= STEPS_FROM_BYTES:
        file.append(PIECE)
        assert ahead_bytes(file.path) < PAGE_BYTES + SLACK_BYTES


def test_a_file_preallocates_nothing_unless_configured(tmp_path: Path) -> None:
    file = created(a_directory(tmp_path), "0.index")
    while file.size < 2 * STEPS_FROM_BYTES:
        file.append(PIECE)
    assert ahead_bytes(file.path) < PAGE_BYTES + SLACK_BYTES


def test_a_disk_that_refuses_a_step_still_takes_what_is_appended(tmp_path: Path) -> None:
    file = created(a_directory(tmp_path, RefusingFiles()), "0.log")
    file.grow_in_steps()
    while file.size < 2 * STEPS_FROM_BYTES:
        file.append(PIECE)
    assert file.read(0, file.size) == PIECE * (file.size // len(PIECE))
    assert ahead_bytes(file.path) < PAGE_BYTES + SLACK_BYTES


def test_a_segment_that_is_rolled_gives_back_what_it_did_not_need(tmp_path: Path) -> None:
    log = a_grown_log(tmp_path)
    path = log.segments.active.log.path
    assert ahead_bytes(path) > SLACK_BYTES
    log.roll(NOW_MS)
    assert ahead_bytes(path) < PAGE_BYTES + SLACK_BYTES


def test_a_clean_stop_gives_back_what_was_not_needed(tmp_path: Path) -> None:
    log = a_grown_log(tmp_path)
    path = log.segments.active.log.path
    log.close(NOW_MS)
    assert ahead_bytes(path) < PAGE_BYTES + SLACK_BYTES


def test_recovery_gives_back_what_a_killed_broker_had_taken(tmp_path: Path) -> None:
    log = a_grown_log(tmp_path)
    path, size = log.segments.active.log.path, log.segments.active.size
    log.flush(NOW_MS)
    assert ahead_bytes(path) > SLACK_BYTES
    recovered = a_manager(tmp_path)
    assert recovered.get(ORDERS) is not None
    assert os.stat(path).st_size == size
    assert ahead_bytes(path) < PAGE_BYTES + SLACK_BYTES
    recovered.stop(NOW_MS)
