from __future__ import annotations

from pathlib import Path

import pytest

from log.given_directories import a_log_directory
from odradek.common.ids import TopicPartition
from odradek.log.offline.read_only import (
    NotALog,
    find_partitions,
    list_partition,
    read_checkpoint,
    read_only_file,
)


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_log_directory_means_its_live_partitions(tmp_path: Path) -> None:
    directory = a_log_directory(tmp_path / "data", batches=2)
    (directory / f"orders-7.{'0' * 32}-delete").mkdir()
    (directory / "backup").mkdir()
    assert find_partitions(str(directory)) == [str(directory / "orders-0"), str(directory / "orders-1")]


def test_a_partition_means_itself_whatever_it_is_called(tmp_path: Path) -> None:
    directory = a_log_directory(tmp_path / "data", batches=2)
    copied = (directory / "orders-0").rename(tmp_path / "copied by hand")
    assert find_partitions(str(copied)) == [str(copied)]
    assert list_partition(str(copied)).partition == TopicPartition("copied by hand", 0)


def test_a_directory_without_segments_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(NotALog):
        find_partitions(str(tmp_path))
    with pytest.raises(NotALog):
        list_partition(str(tmp_path))


def test_segments_can_be_read_and_not_written(tmp_path: Path) -> None:
    directory = a_log_directory(tmp_path / "data", batches=20)
    before = contents(directory)
    segments = list_partition(str(directory / "orders-0")).open_segments()
    assert segments.active.next_offset() == 110
    with pytest.raises(OSError, match="Bad file descriptor"):
        segments.active.log.append(b"x")
    assert contents(directory) == before


def test_a_file_can_be_read_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert read_only_file(str(tmp_path / "file"), 4).read(2, 100) == b"23"


def test_a_missing_or_damaged_checkpoint_reports_nothing(tmp_path: Path) -> None:
    (tmp_path / "damaged").write_text("0\n7\n")
    assert read_checkpoint(str(tmp_path), "damaged") == {}
    assert read_checkpoint(str(tmp_path), "missing") == {}
