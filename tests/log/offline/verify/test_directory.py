"""Every byte of a log directory, changed: found, or on the list of what cannot be (odradek/log/verify)."""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from log.given_directories import a_log_directory, files_below
from odradek.log.offline.read_only import NotALog, read_only_file
from odradek.log.offline.verify.directory import bytes_to_read, verify
from odradek.log.offline.verify.finding import LogFinding
from odradek.log.segment.batch_chunks import batch_chunks
from odradek.records.kernels.layout import BatchColumn

SEGMENTS = Path(__file__).parents[3] / "data" / "segments"
COORDINATORS = Path(__file__).parents[3] / "data" / "coordinators"


def findings(path: Path) -> list[LogFinding]:
    found: list[LogFinding] = []
    summary = verify(str(path), found.append)
    assert summary.finding_count == len(found)
    return found


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_log_directory(tmp_path_factory.mktemp("verify") / "data", batches=10)


def test_a_log_that_we_wrote_is_healthy(healthy: Path) -> None:
    assert findings(healthy) == []


def test_a_log_that_was_not_stopped_is_healthy_up_to_its_indexes(tmp_path: Path) -> None:
    directory = a_log_directory(tmp_path / "data", is_clean=False)
    assert all("index" in found.path for found in findings(directory))


@pytest.mark.parametrize(
    "name", ["librdkafka", "java", "transactions", "log-append-time", "compacted"], ids=str
)
def test_a_log_that_kafka_wrote_is_healthy(name: str) -> None:
    assert findings(SEGMENTS / name) == []


@pytest.mark.parametrize("name", ["__consumer_offsets-0", "__transaction_state-0"])
def test_an_internal_topic_that_kafka_wrote_is_healthy(name: str) -> None:
    assert findings(COORDINATORS / name) == []


def test_progress_adds_up_to_the_bytes_of_the_segments(healthy: Path) -> None:
    advances: list[int] = []
    verify(str(healthy), lambda _: None, advances.append)
    assert sum(advances) == bytes_to_read(str(healthy))


def test_a_directory_without_partitions_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(NotALog, match="neither a partition"):
        findings(tmp_path)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(draws=st.data())
def test_a_changed_byte_is_found_wherever_it_is(healthy: Path, draws: st.DataObject) -> None:
    path = draws.draw(st.sampled_from(files_below(healthy)))
    position = draws.draw(st.integers(0, path.stat().st_size - 1))
    mask = draws.draw(st.integers(1, 255) | st.sampled_from([1 << bit for bit in range(8)]))
    assert_found(healthy, path, position, mask)


@pytest.mark.slow
def test_a_changed_bit_is_found_at_every_place(healthy: Path) -> None:
    bits = random.Random(4)
    for path in files_below(healthy / "orders-0"):
        for position in range(path.stat().st_size):
            assert_found(healthy / "orders-0", path, position, 1 << bits.randrange(8))


def assert_found(directory: Path, path: Path, position: int, mask: int) -> None:
    content = path.read_bytes()
    changed = bytearray(content)
    changed[position] ^= mask

    path.write_bytes(changed)
    try:
        found = findings(directory)
    finally:
        path.write_bytes(content)

    assert found or cannot_be_found(path, content, bytes(changed)), (path, position, mask)


def cannot_be_found(path: Path, before: bytes, after: bytes) -> bool:
    """The list in odradek/log/verify/__init__.py, as far as it applies to a log without gaps."""
    if path.suffix == ".index":
        return leads_not_past_its_offset(path, before, after)
    if path.suffix == ".timeindex":
        return names_a_record_of_the_same_batch(path, before, after)
    is_offset = path.name in ("replication-offset-checkpoint", "log-start-offset-checkpoint")
    return is_offset or path.name in ("meta.properties", ".kafka_cleanshutdown", "partition.metadata")


def batch_ends(path: Path) -> dict[int, tuple[int, int]]:
    """Position of each batch -> its offsets, relative to the segment."""
    base = int(path.name.split(".")[0])
    ends = {}
    for chunk in batch_chunks(read_only_file(str(path.with_suffix(".log")))):
        for at in range(chunk.scan.count):
            first, last = (
                chunk.scan.field(at, c) for c in (BatchColumn.BASE_OFFSET, BatchColumn.LAST_OFFSET)
            )
            ends[chunk.start + chunk.position(at)] = (first - base, last - base)
    return ends


def leads_not_past_its_offset(path: Path, before: bytes, after: bytes) -> bool:
    """A batch begins at its position, and its offset ends that one or a later one before the next entry."""
    ends = batch_ends(path)
    old, new = (list(struct.iter_unpack(">ii", content)) for content in (before, after))
    (number,) = (n for n, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1])
    offset, position = new[number]
    stop = old[number + 1][1] if number + 1 < len(old) else 2**31
    return position in ends and offset in {last for at, (_, last) in ends.items() if position <= at < stop}


def names_a_record_of_the_same_batch(path: Path, before: bytes, after: bytes) -> bool:
    old, new = (list(struct.iter_unpack(">qi", content)) for content in (before, after))
    ((was, became),) = (pair for pair in zip(old, new, strict=True) if pair[0] != pair[1])
    batch = next(offsets for offsets in batch_ends(path).values() if offsets[1] == was[1])
    return was[0] == became[0] and batch[0] <= became[1] < was[1]


@pytest.mark.parametrize("kind", [".log", ".index", ".timeindex", ".txnindex", ".snapshot"])
@pytest.mark.parametrize("amount", [-1, -5, 3])
def test_a_file_that_became_shorter_or_longer_is_found(
    healthy: Path, tmp_path: Path, kind: str, amount: int
) -> None:
    directory = Path(shutil.copytree(healthy, tmp_path / "data"))
    path = min(directory.rglob(f"*{kind}"))
    content = path.read_bytes()
    path.write_bytes(content[:amount] if amount < 0 else content + b"\0" * amount)

    assert str(path) in {found.path for found in findings(directory)}


def test_a_missing_index_is_found(healthy: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(healthy, tmp_path / "data"))
    index = min(directory.rglob("*.timeindex"))
    index.unlink()

    (found,) = findings(directory)

    assert (found.path, found.problem) == (str(index), "it is missing")


def test_an_index_without_its_log_is_found(healthy: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(healthy, tmp_path / "data"))
    min(directory.rglob("*.log")).unlink()
    assert any("its log file is missing" in found.problem for found in findings(directory))


def test_the_zeroes_of_a_preallocated_index_are_no_damage(healthy: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(healthy, tmp_path / "data"))
    for kind in ("index", "timeindex"):
        active = max((directory / "orders-0").glob(f"*.{kind}"))
        active.write_bytes(active.read_bytes() + bytes(1200 * 24))
    assert findings(directory) == []


def test_two_topic_ids_in_one_topic_are_found(healthy: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(healthy, tmp_path / "data"))
    metadata = directory / "orders-1" / "partition.metadata"
    metadata.write_bytes(metadata.read_bytes()[:-22] + b"AAAAAAAAAAAAAAAAAAAAAQ")

    (found,) = findings(directory)

    assert "another topic id than orders-0 has" in found.problem


def test_checkpoints_may_name_a_partition_that_was_just_deleted(healthy: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(healthy, tmp_path / "data"))
    deleted = directory / f"orders-1.{'0' * 32}-delete"

    (directory / "orders-1").rename(deleted)
    assert findings(directory) == []

    shutil.rmtree(deleted)
    assert {found.problem for found in findings(directory)} == {"orders-1: there is no such partition here"}


def test_damage_is_reported_with_the_byte_where_its_batch_begins(healthy: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(healthy, tmp_path / "data"))
    log = min((directory / "orders-0").glob("*.log"))
    content = bytearray(log.read_bytes())
    second_batch = int.from_bytes(content[8:12], "big") + 12
    content[second_batch + 70] ^= 4
    log.write_bytes(content)

    (found,) = findings(directory)

    assert (found.path, found.position) == (str(log), second_batch)
    assert f"odradek log repair {directory / 'orders-0'}" in found.advice
