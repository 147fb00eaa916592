"""How often a reader that goes on has to look into the files before its batches can be sent."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from log.directories.test_log_move import a_manager, append
from log.given_logs import NOW_MS
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.partition.partition_log import PartitionLog
from odradek.testing.faulty_files import FaultyFiles

ORDERS = TopicPartition("orders", 0)
BATCHES, BATCH_BYTES, FETCH_BYTES = 3000, 5000, 100_000
READS_OF_ALL = BATCHES * BATCH_BYTES // FETCH_BYTES


class CountedFiles(FaultyFiles):
    """Counts the reads of each kind of file."""

    __slots__ = ("reads",)

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()

    def read_at(self, file, length, position):
        self.reads[Path(self._path(file)).suffix] += 1
        return super().read_at(file, length, position)


@pytest.fixture(scope="module")
def files() -> CountedFiles:
    return CountedFiles()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory, files: CountedFiles):
    manager = a_manager(tmp_path_factory.mktemp("logs"), files)
    log = manager.get_or_create(ORDERS, LogConfig(), now_ms=NOW_MS)
    append(log, *(bytes(BATCH_BYTES) for _ in range(BATCHES)))
    log.segments.active.write_pending()
    yield log
    manager.stop(NOW_MS)


def read_on(log: PartitionLog, offset: int) -> int:
    """Read once; where to go on."""
    batches = log.read(offset, FETCH_BYTES).range
    assert batches is not None
    assert batches.length <= FETCH_BYTES
    size = log.segments.active.size // BATCHES
    return offset + batches.length // size


def test_a_steady_reader_looks_into_the_log_once_for_each_read(
    log: PartitionLog, files: CountedFiles
) -> None:
    files.reads.clear()
    offset = reads = 0
    while offset < BATCHES:
        offset = read_on(log, offset)
        reads += 1
    assert reads >= READS_OF_ALL
    assert files.reads[".log"] <= reads + 1
    assert files.reads[".index"] < reads / 5


def test_many_steady_readers_do_not_disturb_each_other(log: PartitionLog, files: CountedFiles) -> None:
    offsets = [100 * reader for reader in range(16)]
    offsets = [read_on(log, offset) for offset in offsets]
    files.reads.clear()
    for _ in range(20):
        offsets = [read_on(log, offset) for offset in offsets]
    assert files.reads[".log"] <= 20 * len(offsets)


def test_a_reader_that_jumps_finds_what_it_wants(log: PartitionLog) -> None:
    for offset in (2999, 0, 1500, 1499, 700, 2222, 1):
        found = log.read(offset, FETCH_BYTES).range
        assert found is not None
        size = log.segments.active.size // BATCHES
        assert found.position == offset * size
        assert found.length == min(FETCH_BYTES // size, BATCHES - offset) * size
