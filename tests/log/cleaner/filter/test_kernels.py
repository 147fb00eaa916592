from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.log.cleaner.filter.layout import (
    DIGEST_WIDTH,
    ENTRY_WIDTH,
    ROW_WIDTH,
    RecordKind,
    Row,
    max_records,
)
from odradek.records.batch import HEADER_SIZE
from odradek.records.builder import build_batch
from odradek.records.kernels.batch_scan import scan_batches
from odradek.records.kernels.record_objects import Record

# From the reference implementation: key 00 01 … 0f, message 00 01 … of that length, 128 bits.
SIPHASH_VECTORS = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
}

either = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)


def table(size: int) -> tuple[memoryview, memoryview]:
    rows = memoryview(bytearray(max_records(size) * ROW_WIDTH * 8)).cast("q")
    return rows, memoryview(bytearray(max_records(size) * DIGEST_WIDTH * 8)).cast("Q")


def entries(slots: int) -> memoryview:
    return memoryview(bytearray(slots * ENTRY_WIDTH * 8)).cast("Q")


@pytest.mark.parametrize("length", list(SIPHASH_VECTORS))
def test_keys_are_hashed_by_siphash(kernel: ModuleType, length: int) -> None:
    secret = [int.from_bytes(bytes(range(start, start + 8)), "little") for start in (0, 8)]

    halves = kernel.siphash(bytes(range(length)), *secret)

    assert b"".join(half.to_bytes(8, "little") for half in halves).hex() == SIPHASH_VECTORS[length]


@either
@given(key=st.binary(max_size=70), secret=st.tuples(*[st.integers(0, 2**64 - 1)] * 2))
def test_both_ways_hash_alike(key: bytes, secret: tuple[int, int]) -> None:
    from log.cleaner.conftest import TWINS

    compiled, interpreted = (TWINS[name][0] for name in ("compiled", "interpreted"))
    assert compiled.siphash(key, *secret) == interpreted.siphash(key, *secret)


def test_rows_report_what_is_in_the_records(kernel: ModuleType) -> None:
    records = [
        Record(100, 5000, b"a", b"1"),
        Record(103, 4000, b"b", None),
        Record(104, 5001, None, b"x", (("h", b"v"),)),
    ]
    batch = build_batch(records, base_offset=100, last_offset_delta=9)
    rows, digests = table(len(batch))

    scan = scan_batches(batch, 0, len(batch))
    count, problem, _, _ = kernel.digest_batches(batch, scan.table, 0, 1, bytes(1), 0, 1, 2, rows, digests)

    assert (count, problem) == (3, 0)
    found = [rows[index * ROW_WIDTH : (index + 1) * ROW_WIDTH].tolist() for index in range(3)]
    assert [row[Row.OFFSET] for row in found] == [100, 103, 104]
    assert [row[Row.TIMESTAMP_DELTA] for row in found] == [0, -1000, 1]
    assert [row[Row.KIND] for row in found] == [RecordKind.VALUE, RecordKind.TOMBSTONE, RecordKind.NO_KEY]
    assert [row[Row.START] for row in found] == [HEADER_SIZE, found[0][Row.END], found[1][Row.END]]
    assert tuple(digests[:2]) == kernel.siphash(b"a", 1, 2)
    assert tuple(digests[2:4]) == kernel.siphash(b"b", 1, 2)


def test_a_tombstone_is_expired_when_the_horizon_of_its_batch_is_reached(kernel: ModuleType) -> None:
    batch = build_batch([Record(0, 5000, b"a", None)], delete_horizon_ms=9000)
    rows, digests = table(len(batch))
    scan = scan_batches(batch, 0, len(batch))

    kinds = []
    for now_ms in (8999, 9000):
        kernel.digest_batches(batch, scan.table, 0, 1, bytes(1), now_ms, 0, 0, rows, digests)
        kinds.append(rows[Row.KIND])

    assert kinds == [RecordKind.TOMBSTONE, RecordKind.EXPIRED_TOMBSTONE]


@either
@given(
    keys=st.lists(st.binary(min_size=0, max_size=2), max_size=60),
    slots=st.integers(61, 80),
    max_size=st.integers(1, 60),
    start_offset=st.integers(0, 20),
)
def test_the_map_holds_the_last_offset_of_each_key_until_it_is_full(
    kernel: ModuleType, keys: list[bytes], slots: int, max_size: int, start_offset: int
) -> None:
    batch = build_batch([Record(2 * index, 0, key, b"v") for index, key in enumerate(keys)])
    rows, digests = table(len(batch))
    places = entries(slots)
    kernel.digest_records(batch, HEADER_SIZE, len(batch), len(keys), 0, False, 7, 8, rows, digests)

    done, size = kernel.put_offsets(places, slots, 0, max_size, rows, digests, len(keys), start_offset)

    model: dict[bytes, int] = {}
    expected_done = len(keys)
    for index, key in enumerate(keys):
        if 2 * index >= start_offset:
            if key not in model and len(model) >= max_size:
                expected_done = index
                break
            model[key] = 2 * index
    assert (done, size) == (expected_done, len(model))
    for key in {*keys, b"never seen"}:
        assert kernel.find_offset(places, slots, *kernel.siphash(key, 7, 8)) == model.get(key, -1)


def test_a_map_that_could_fill_up_is_refused(kernel: ModuleType) -> None:
    rows, digests = table(100)
    with pytest.raises(IndexError):
        kernel.put_offsets(entries(8), 8, 0, 8, rows, digests, 0, 0)


@either
@given(data=st.data())
def test_damaged_records_are_reported_and_never_read_past_their_end(
    kernel: ModuleType, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, 4))
    records = [Record(i, i, b"key" * i, b"value", (("h", b""),) * (i % 2)) for i in range(count)]
    batch = bytearray(build_batch(records))
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(HEADER_SIZE, len(batch) - 1))] = data.draw(st.integers(0, 255))
    claimed = data.draw(st.sampled_from([count, -1, 0, count + 1, 2**31 - 1]))
    rows, digests = table(len(batch))

    problem, position = kernel.digest_records(
        batch, HEADER_SIZE, len(batch), claimed, 0, False, 0, 0, rows, digests
    )

    if problem:
        assert HEADER_SIZE <= position <= len(batch)
    else:
        ends = [rows[index * ROW_WIDTH + Row.END] for index in range(claimed)]
        assert ends == sorted(ends)
        assert ends[-1] == len(batch)
