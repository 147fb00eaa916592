from __future__ import annotations

import pytest

from odradek.log.cleaner.filter.layout import ENTRY_BYTES
from odradek.log.cleaner.filter.offset_map import OffsetMap, RecordTable
from odradek.records.batch import HEADER_SIZE
from odradek.records.builder import build_batch
from odradek.records.errors import CorruptBatch
from odradek.records.kernels.record_objects import Record


def a_table(offset_map: OffsetMap, keys: list[bytes], base_offset: int = 0) -> RecordTable:
    records = [Record(base_offset + index, 0, key, b"v") for index, key in enumerate(keys)]
    batch = build_batch(records, base_offset=base_offset)
    table = RecordTable()
    offset_map.digest_records(
        table,
        memoryview(batch)[HEADER_SIZE:],
        len(keys),
        base_offset,
        base_offset + len(keys) - 1,
        tombstones_expired=False,
    )
    return table


@pytest.mark.usefixtures("either_way")
def test_a_later_offset_replaces_an_earlier_one() -> None:
    offset_map = OffsetMap(100 * ENTRY_BYTES)

    assert offset_map.put(a_table(offset_map, [b"a", b"b"]))
    assert offset_map.put(a_table(offset_map, [b"a", b"c"], base_offset=10))

    assert [offset_map.get(key) for key in (b"a", b"b", b"c", b"d")] == [10, 1, 11, -1]
    assert len(offset_map) == 3


def test_an_entry_costs_24_bytes_and_the_load_factor_is_kept() -> None:
    offset_map = OffsetMap(24 * 100, load_factor=0.9)

    assert not offset_map.put(a_table(offset_map, [b"%d" % number for number in range(200)], 1000))

    assert len(offset_map) == 90
    assert offset_map.is_full
    assert offset_map.latest_offset == 1089
    assert offset_map.utilization == 0.9


def test_a_full_map_still_takes_keys_that_it_has() -> None:
    offset_map = OffsetMap(24 * 100, load_factor=0.5)
    offset_map.put(a_table(offset_map, [b"%d" % number for number in range(50)]))

    assert offset_map.put(a_table(offset_map, [b"7", b"8"], base_offset=100))

    assert offset_map.get(b"7") == 100


def test_a_load_factor_of_one_leaves_a_place_free() -> None:
    offset_map = OffsetMap(24 * 10, load_factor=1.0)

    assert not offset_map.put(a_table(offset_map, [b"%d" % number for number in range(20)]))

    assert offset_map.get(b"never seen") == -1


def test_few_records_take_little_memory_and_clearing_forgets_them() -> None:
    offset_map = OffsetMap(1 << 30)

    offset_map.clear(max_keys=1000)
    assert offset_map.slots == 2000
    offset_map.put(a_table(offset_map, [b"a"]))
    offset_map.clear(max_keys=1000)

    assert offset_map.get(b"a") == -1
    assert len(offset_map) == 0


@pytest.mark.parametrize(
    ("count", "last_offset", "problem"),
    [
        (9, 8, "ends before it has as many records"),
        (0, 0, "bytes are left"),
        (2, 0, "behind the batch's last"),
    ],
)
def test_damage_is_an_error_and_no_guess(count: int, last_offset: int, problem: str) -> None:
    offset_map = OffsetMap(24 * 10)
    batch = build_batch([Record(0, 0, b"a", b"b"), Record(1, 0, b"c", b"d")])
    records = memoryview(batch)[HEADER_SIZE:]

    with pytest.raises(CorruptBatch, match=problem):
        offset_map.digest_records(RecordTable(), records, count, 0, last_offset, tombstones_expired=False)


def test_a_buffer_without_space_for_a_key_is_rejected() -> None:
    with pytest.raises(ValueError, match="too few"):
        OffsetMap(24)
