from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from log.given_logs import NOW_MS, fill, open_log
from odradek.log.offline.scan import ScanRange, scan
from odradek.log.offline.scan_parts import ScanPart, plan_parts, scan_part

SEGMENTS = Path(__file__).parents[2] / "data" / "segments"


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> str:
    """100 batches of two records in many segments."""
    path = tmp_path_factory.mktemp("parts") / "orders-0"
    log = open_log(path)
    fill(log, 100)
    log.close(NOW_MS)
    return str(path)


def offsets(parts: list[ScanPart]) -> list[int]:
    return [
        offset for part in parts for rows in scan_part(part) for offset in rows.column("offset").to_pylist()
    ]


@pytest.mark.parametrize("part_bytes", [1, 100, 400, 1 << 30])
def test_the_parts_together_have_every_record_once(partition: str, part_bytes: int) -> None:
    parts = plan_parts(partition, ScanRange(), part_bytes)
    assert offsets(parts) == list(range(200))
    segments = len(list(Path(partition).glob("*.log")))
    assert len(parts) >= segments
    assert (len(parts) == segments) == (part_bytes == 1 << 30)


@pytest.mark.parametrize(("start", "end"), [(0, 200), (13, 14), (57, 133), (199, 500), (150, 20), (300, 400)])
def test_offsets_bound_the_parts(partition: str, start: int, end: int) -> None:
    parts = plan_parts(partition, ScanRange(start, end), 400)
    assert offsets(parts) == list(range(start, min(end, 200)))


def test_a_part_ends_where_the_log_ended_when_it_was_planned(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    fill(log, 10)
    (part,) = plan_parts(str(tmp_path / "orders-0"), ScanRange())[-1:]
    fill(log, 10)
    log.close(NOW_MS)
    assert part.end_offset == 20
    assert offsets([part])[-1] == 19


@pytest.mark.parametrize("read_committed", [True, False])
@pytest.mark.parametrize("name", ["transactions", "compacted"])
def test_parts_of_kafkas_logs_have_the_rows_of_a_scan(name: str, read_committed: bool) -> None:
    path = str(SEGMENTS / name)
    parts = plan_parts(path, ScanRange(read_committed=read_committed), 100)
    parts = pickle.loads(pickle.dumps(parts))
    expected = [
        offset
        for rows in scan(path, read_committed=read_committed)
        for offset in rows.column("offset").to_pylist()
    ]
    assert offsets(parts) == expected
    assert len(expected) > 5


def test_an_empty_log_has_no_parts(tmp_path: Path) -> None:
    open_log(tmp_path / "orders-0").close(NOW_MS)
    assert plan_parts(str(tmp_path / "orders-0"), ScanRange()) == []
