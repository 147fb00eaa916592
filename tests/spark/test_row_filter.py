"""Filters that Spark pushes down, without Spark's help."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from odradek.common.ids import TopicPartition
from odradek.spark.pushdown import PushFilters
from odradek.spark.row_filter import RowFilter, take_filters


def test_topics_and_partitions_are_chosen() -> None:
    taken, left = take_filters(
        [
            EqualTo(("topic",), "a"),
            In(("partition",), (1, 2)),
            In(("partition",), (2, 3)),
            IsNotNull(("topic",)),
        ]
    )
    assert left == []
    assert taken.has(TopicPartition("a", 2))
    assert not taken.has(TopicPartition("a", 1))
    assert not taken.has(TopicPartition("b", 2))


@pytest.mark.parametrize(
    ("filters", "bounds"),
    [
        ([GreaterThan(("offset",), 5), LessThan(("offset",), 9)], (6, 9)),
        ([GreaterThanOrEqual(("offset",), 5), LessThanOrEqual(("offset",), 9)], (5, 10)),
        ([EqualTo(("offset",), 7)], (7, 8)),
        ([EqualTo(("offset",), 7), GreaterThan(("offset",), 3)], (7, 8)),
    ],
)
def test_offsets_are_bounded(filters: list[object], bounds: tuple[int, int]) -> None:
    taken, left = take_filters(filters)
    assert left == []
    assert (taken.start_offset, taken.end_offset) == bounds


def test_times_are_bounded_to_the_whole_millisecond() -> None:
    at = datetime(2026, 1, 1, 0, 0, 0, 1500, tzinfo=UTC)  # 1.5 ms
    begin_ms = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
    times = pa.array([begin_ms + offset for offset in range(4)], pa.timestamp("ms", "UTC"))
    rows = pa.record_batch({"timestamp": times})

    def kept(one: object) -> list[int]:
        taken, left = take_filters([one])
        assert left == []
        return [
            round(time.timestamp() * 1000) - begin_ms for time in taken.rows(rows)["timestamp"].to_pylist()
        ]

    assert kept(GreaterThan(("timestamp",), at)) == [2, 3]
    assert kept(LessThanOrEqual(("timestamp",), at)) == [0, 1]
    whole = at.replace(microsecond=2000)
    assert kept(EqualTo(("timestamp",), whole)) == [2]
    assert kept(LessThan(("timestamp",), whole)) == [0, 1]
    assert kept(GreaterThanOrEqual(("timestamp",), whole)) == [2, 3]


def test_other_filters_are_left_to_spark() -> None:
    others = [
        EqualTo(("key",), b"x"),
        StringStartsWith(("topic",), "a"),
        Not(EqualTo(("partition",), 1)),
        GreaterThan(("partition",), 1),
        EqualTo(("headers", "key"), "x"),
    ]
    assert take_filters(others) == (RowFilter(), others)


def test_a_reader_is_accepted_whether_or_not_spark_pushes_down() -> None:
    found: list[RowFilter] = []
    push = PushFilters(found.append)
    assert push.__func__ is DataSourceReader.pushFilters  # what Spark looks at
    other = EqualTo(("key",), b"x")
    assert list(push([EqualTo(("offset",), 3), other])) == [other]
    assert found == [RowFilter(start_offset=3, end_offset=4)]
