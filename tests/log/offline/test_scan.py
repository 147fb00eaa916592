from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from log.given_directories import ORDERS, a_log_directory, append_batch, open_manager
from log.given_logs import NOW_MS, SMALL, a_batch, a_marker, fill, open_log
from odradek.log.errors import LogCorrupted
from odradek.log.offline.read_only import NotALog
from odradek.log.offline.scan import scan, schema
from odradek.log.partition.leader_batches import Origin

SEGMENTS = Path(__file__).parents[2] / "data" / "segments"


def rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    return [row for batch in scan(path, **options) for row in batch.to_pylist()]


def offsets(path: Path, **options: Any) -> list[int]:
    return [row["offset"] for row in rows(path, **options)]


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 batches of two records in many segments; the times rise by a second per offset."""
    path = tmp_path_factory.mktemp("scan") / "orders-0"
    log = open_log(path)
    fill(log, 100)
    log.close(NOW_MS)
    return path


def test_every_record_comes_in_order_with_topic_and_partition(partition: Path) -> None:
    found = rows(partition)
    assert [row["offset"] for row in found] == list(range(200))
    assert {(row["topic"], row["partition"]) for row in found} == {("orders", 0)}
    assert found[7]["value"].startswith(b"6:")


def test_batches_have_the_schema_that_is_announced(partition: Path) -> None:
    assert {batch.schema for batch in scan(partition)} == {schema()}


@pytest.mark.parametrize(
    "name", ["librdkafka", "java", "log-append-time", "compacted", "transactions"], ids=str
)
def test_a_log_of_kafka_gives_what_its_consumer_read(name: str) -> None:
    expected = json.loads((SEGMENTS / name / "expected.json").read_text())
    found = rows(SEGMENTS / name)
    assert [row["offset"] for row in found] == [one["offset"] for one in expected]
    for row, one in zip(found, expected, strict=True):
        assert row["key"] == decoded(one["key"])
        assert row["value"] == decoded(one["value"])
        assert int(row["timestamp"].timestamp() * 1000 + 0.5) == one["timestamp_ms"]
        assert [(h["key"], h["value"]) for h in row["headers"]] == [
            (k, decoded(v)) for k, v in one["headers"]
        ]


def decoded(content: str | None) -> bytes | None:
    return None if content is None else base64.b64decode(content)


@pytest.mark.parametrize(("start", "end"), [(0, 200), (13, 14), (12, 15), (57, 133), (199, 500), (150, 20)])
def test_offsets_bound_the_scan_also_inside_of_batches(partition: Path, start: int, end: int) -> None:
    expected = list(range(start, min(end, 200)))
    assert offsets(partition, start_offset=start, end_offset=end) == expected


@pytest.mark.parametrize(("start", "end"), [(0, 40), (17, 18), (100, 1000), (500, 600)])
def test_times_bound_the_scan_at_the_first_records_as_young(partition: Path, start: int, end: int) -> None:
    found = offsets(partition, start_timestamp_ms=NOW_MS + start * 1000, end_timestamp_ms=NOW_MS + end * 1000)
    # Both records of a batch have the time of its first offset, so odd times begin with the next batch.
    assert found == list(range(start + start % 2, min(end + end % 2, 200)))


def test_segments_outside_of_the_range_are_not_read(partition: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(partition, tmp_path / "orders-0"))
    first, *_, last = sorted(directory.glob("*.log"))
    for log in (first, last):
        log.write_bytes(b"\xff" * log.stat().st_size)
    second = int(sorted(directory.glob("*.log"))[1].stem)

    assert offsets(directory, start_offset=second, end_offset=second + 10) == list(range(second, second + 10))


def test_a_scan_by_offset_reads_one_chunk_not_the_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", SMALL)
    fill(log, 20)
    log.close(NOW_MS)
    path = min((tmp_path / "orders-0").glob("*.log"))
    content = bytearray(path.read_bytes())
    content[70] ^= 1  # the first batch is damaged, but the index leads past it
    path.write_bytes(content)

    assert offsets(tmp_path / "orders-0", start_offset=16, end_offset=18) == [16, 17]


def test_chunks_bound_what_comes_at_once(partition: Path) -> None:
    batches = list(scan(partition, chunk_bytes=1000))
    assert len(batches) > 20
    assert sum(batch.num_rows for batch in batches) == 200


def test_a_batch_larger_than_a_chunk_comes_whole(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    log.append_as_leader(a_batch(1, value=b"x" * 3000), 0, now_ms=NOW_MS)
    log.close(NOW_MS)
    assert [len(row["value"]) for row in rows(tmp_path / "orders-0", chunk_bytes=100)] == [3000]


def test_a_log_directory_gives_all_its_partitions_or_those_wanted(tmp_path: Path) -> None:
    directory = a_log_directory(tmp_path / "data", batches=4)
    assert {row["partition"] for row in rows(directory)} == {0, 1}
    assert {row["partition"] for row in rows(directory, partitions=[ORDERS[1]])} == {1}


def test_aborted_transactions_and_markers_stay_out_of_a_committed_read(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for producer_id, is_commit in ((1, True), (2, False)):
        data = a_batch(
            2,
            value=b"%d" % producer_id,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        log.append_as_leader(data, 0, now_ms=NOW_MS)
        log.append_as_leader(a_batch(1, value=b"plain"), 0, now_ms=NOW_MS)
        marker = a_marker(producer_id, is_commit=is_commit)
        log.append_as_leader(marker, 0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    log.close(NOW_MS)

    assert offsets(tmp_path / "orders-0") == [0, 1, 2, 4, 5, 6]
    assert offsets(tmp_path / "orders-0", read_committed=True) == [0, 1, 2, 6]


def test_a_damaged_transaction_index_is_replaced_by_the_markers(tmp_path: Path) -> None:
    directory = a_log_directory(tmp_path / "data", batches=20) / "orders-0"
    expected = offsets(directory, read_committed=True)
    for index in directory.glob("*.txnindex"):
        index.write_bytes(b"\7" * index.stat().st_size)
    assert offsets(directory, read_committed=True) == expected


def test_a_committed_read_ends_before_an_open_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    fill(log, 2)
    batch = a_batch(1, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.append_as_leader(batch, 0, now_ms=NOW_MS)
    fill(log, 2)
    log.close(NOW_MS)
    for snapshot in (tmp_path / "orders-0").glob("*.snapshot"):
        assert offsets(tmp_path / "orders-0", read_committed=True) == [0, 1, 2, 3]
        snapshot.unlink()  # then the log itself is read
    assert offsets(tmp_path / "orders-0", read_committed=True) == [0, 1, 2, 3]
    assert len(offsets(tmp_path / "orders-0")) == 9


def test_kafkas_aborted_records_stay_out_of_a_committed_read() -> None:
    values = [row["value"] for row in rows(SEGMENTS / "transactions", read_committed=True)]
    assert sum(b"in transaction" in value for value in values) == 6
    assert sum(b"outside" in value for value in values) == 3


def test_deleted_records_are_not_seen(tmp_path: Path) -> None:
    manager = open_manager(tmp_path / "data")
    log = manager.get_or_create(ORDERS[0], SMALL, now_ms=NOW_MS)
    for number in range(5):
        append_batch(log, number)
    log.update_high_watermark(log.log_end_offset)
    log.delete_records(7)
    manager.stop(NOW_MS)
    assert offsets(tmp_path / "data") == list(range(7, 15))


def test_a_log_being_written_gives_its_whole_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    fill(log, 5)
    active = max((tmp_path / "orders-0").glob("*.log"))
    content = active.read_bytes()
    for cut in (1, 50, 100):
        active.write_bytes(content[:-cut])
        assert offsets(tmp_path / "orders-0") == list(range(8))
        assert offsets(tmp_path / "orders-0", start_timestamp_ms=NOW_MS + 4000) == [4, 5, 6, 7]


def test_damage_says_where_it_is(partition: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(partition, tmp_path / "orders-0"))
    log = sorted(directory.glob("*.log"))[1]
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)

    with pytest.raises(LogCorrupted, match="CRC") as raised:
        rows(directory)

    assert (raised.value.path, raised.value.position) == (str(log), 0)


def test_a_directory_that_is_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotALog):
        list(scan(tmp_path))


def test_the_rows_are_arrow_batches(partition: Path) -> None:
    table = pa.Table.from_batches(scan(partition), schema())
    assert table.num_rows == 200
