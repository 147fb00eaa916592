from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.ids import TopicPartition
from odradek.spark.source.offsets import OffsetRange, from_json, limited, split, to_json

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
PARTITIONS = [A0, A1, B0]
sizes = st.lists(st.integers(0, 1000), min_size=3, max_size=3)


def test_offsets_look_like_those_of_the_official_source() -> None:
    offsets = {B0: 7, A1: 5, A0: 3}
    assert to_json(offsets) == {"a": {"0": 3, "1": 5}, "b": {"0": 7}}
    assert from_json(to_json(offsets)) == offsets


def test_a_limit_is_shared_in_proportion() -> None:
    start = {A0: 100, A1: 0, B0: 50}
    latest = {A0: 200, A1: 300, B0: 50}
    assert limited(start, latest, 40) == {A0: 110, A1: 30, B0: 50}
    assert limited(start, latest, 400) == latest


@given(counts=sizes, most=st.integers(1, 500))
def test_a_limit_always_leads_on_and_never_back(counts: list[int], most: int) -> None:
    start = dict.fromkeys(PARTITIONS, 10)
    latest = {one: 10 + count for one, count in zip(PARTITIONS, counts, strict=True)}
    end = limited(start, latest, most)
    for one, count in zip(PARTITIONS, counts, strict=True):
        assert start[one] + min(count, 1) <= end[one] <= latest[one]
    # Shares are rounded down; only those below one are rounded up.
    small = sum(0 < most * count < sum(counts) for count in counts)
    assert sum(end.values()) - 30 <= most + small


@given(counts=sizes, least=st.integers(0, 20), most=st.one_of(st.none(), st.integers(1, 300)))
def test_a_split_has_every_offset_once(counts: list[int], least: int, most: int | None) -> None:
    ranges = [OffsetRange(one, 5, 5 + count) for one, count in zip(PARTITIONS, counts, strict=True)]
    parts = split(ranges, least, most)
    for whole in ranges:
        mine = [part for part in parts if part.partition == whole.partition]
        assert [offset for part in mine for offset in range(part.start, part.end)] == list(
            range(whole.start, whole.end)
        )
    assert all(part.size > 0 for part in parts)
    assert most is None or all(part.size <= most for part in parts)
    assert len(parts) >= min(least, sum(counts))


@pytest.mark.parametrize(("least", "parts"), [(0, 2), (2, 2), (4, 4), (5, 6)])
def test_the_larger_range_is_cut_into_more(least: int, parts: int) -> None:
    ranges = [OffsetRange(A0, 0, 300), OffsetRange(A1, 0, 100), OffsetRange(B0, 9, 9)]
    assert len(split(ranges, least, None)) == parts
