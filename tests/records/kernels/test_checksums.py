"""The CRCs of many batches at once: what the crc32c package says of each."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.records.builder import build_batch
from odradek.records.kernels import checksums
from odradek.records.kernels.batch_scan import scan_batches
from odradek.records.kernels.layout import BatchColumn
from odradek.records.kernels.record_objects import Record
from records.conftest import interpreted

TWINS = {
    "compiled": checksums,
    "interpreted": interpreted("kernels/checksums"),
    "interpreted with tables": interpreted("kernels/checksums"),
}
TWINS["interpreted with tables"]._SMALL_BYTES = 1024  # type: ignore[attr-defined]


@pytest.fixture(params=list(TWINS))
def twin(request: pytest.FixtureRequest) -> ModuleType:
    return TWINS[request.param]


def batches(value_sizes: list[int]) -> bytearray:
    built = [build_batch([Record(0, 0, b"key", b"v" * size)]) for size in value_sizes]
    return bytearray(b"".join(built))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(value_sizes=st.lists(st.integers(0, 40) | st.integers(930, 960) | st.just(3000), max_size=12))
def test_intact_batches_are_whole(twin: ModuleType, value_sizes: list[int]) -> None:
    log = batches(value_sizes)
    scan = scan_batches(log, 0, len(log))

    assert twin.count_whole(log, scan.table, scan.count) == len(value_sizes)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(value_sizes=st.lists(st.sampled_from([0, 5, 200, 2000]), min_size=1, max_size=6), data=st.data())
def test_a_flipped_bit_ends_the_whole_ones(
    twin: ModuleType, value_sizes: list[int], data: st.DataObject
) -> None:
    log = batches(value_sizes)
    scan = scan_batches(log, 0, len(log))
    victim = data.draw(st.integers(0, len(value_sizes) - 1))
    start = scan.field(victim, BatchColumn.POSITION)
    size = scan.field(victim, BatchColumn.SIZE_IN_BYTES)
    log[start + data.draw(st.integers(21, size - 1))] ^= 1 << data.draw(st.integers(0, 7))

    assert twin.count_whole(log, scan.table, scan.count) == victim


def test_more_batches_than_there_are_is_the_callers_mistake(twin: ModuleType) -> None:
    log = batches([10, 10])
    scan = scan_batches(log, 0, len(log))

    with pytest.raises(IndexError):
        twin.count_whole(log, scan.table, 3)
    with pytest.raises(IndexError):
        twin.count_whole(log[:-1], scan.table, 2)
