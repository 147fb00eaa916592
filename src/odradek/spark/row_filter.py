"""Filters that Spark pushes down: which topics, partitions, offsets and times a read needs. No I/O.

A filter that is taken here is carried out in full, so that Spark does not repeat it: topics, partitions and
offsets choose ranges of offsets before anything is read; times do so where an index helps (the lower bound),
and both bounds drop rows before they are given to Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Bounds are inclusive below, exclusive above. It is pickled and sent to the tasks."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start_offset: int = 0
    end_offset: int = _MOST
    start_time_us: int | None = None
    end_time_us: int | None = None

    def has(self, partition: TopicPartition) -> bool:
        """Whether rows of a partition may pass."""
        return (self.topics is None or partition.topic in self.topics) and (
            self.partitions is None or partition.partition in self.partitions
        )

    @property
    def start_time_ms(self) -> int | None:
        """The first whole millisecond that passes."""
        return None if self.start_time_us is None else -(-self.start_time_us // 1000)

    @property
    def end_time_ms(self) -> int | None:
        """The first whole millisecond that does not pass any more."""
        return None if self.end_time_us is None else -(-self.end_time_us // 1000)

    def rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows, with the columns of `records.arrow`, whose times pass."""
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        if self.start_time_ms is None and self.end_time_ms is None:
            return rows
        times = rows.column("timestamp").view(pa.int64())
        if self.start_time_ms is not None:
            is_kept = pc.greater_equal(times, self.start_time_ms)
            rows, times = rows.filter(is_kept), times.filter(is_kept)
        if self.end_time_ms is not None:
            rows = rows.filter(pc.less(times, self.end_time_ms))
        return rows


def take_filters(filters: Iterable[Filter]) -> tuple[RowFilter, list[Filter]]:
    """The filters that are taken, as one, and the others."""
    taken, left = RowFilter(), []
    for one in filters:
        narrowed = _narrowed(taken, one)
        if narrowed is None:
            left.append(one)
        else:
            taken = narrowed
    return taken, left


def _narrowed(before: RowFilter, one: Filter) -> RowFilter | None:
    """With one more filter; None if it is not for us."""
    name = type(one).__name__
    column: tuple[str, ...] = getattr(one, "attribute", ())
    value = getattr(one, "value", None)
    if len(column) != 1:
        return None
    if name == "IsNotNull" and column[0] in ("topic", "partition", "offset", "timestamp"):
        return before  # none of them ever is
    if column[0] in ("topic", "partition"):
        return _chosen(before, column[0], name, value)
    bounds = _bounds(name, _number(column[0], value))
    if bounds is None:
        return None
    start, end = bounds
    if column[0] == "offset":
        return replace(
            before, start_offset=max(before.start_offset, start), end_offset=min(before.end_offset, end)
        )
    return replace(
        before,
        start_time_us=max(
            (one for one in (before.start_time_us, start) if one is not None and one > -_MOST), default=None
        ),
        end_time_us=min(
            (one for one in (before.end_time_us, end) if one is not None and one < _MOST), default=None
        ),
    )


def _chosen(before: RowFilter, column: str, name: str, value: Any) -> RowFilter | None:
    """With one or several allowed values."""
    if name in ("EqualTo", "EqualNullSafe"):
        wanted = frozenset({value})
    elif name == "In":
        wanted = frozenset(value)
    else:
        return None
    if column == "topic":
        return replace(before, topics=wanted if before.topics is None else before.topics & wanted)
    return replace(before, partitions=wanted if before.partitions is None else before.partitions & wanted)


def _number(column: str, value: Any) -> int | None:
    """An offset, or a time in microseconds."""
    if column == "offset" and type(value) is int:
        return value
    if column == "timestamp" and isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.astimezone()
        return (aware - _EPOCH) // timedelta(microseconds=1)
    return None


def _bounds(name: str, value: int | None) -> tuple[int, int] | None:
    """The first number that passes, and the first after it that does not."""
    if value is None:
        return None
    bounds = {
        "EqualTo": (value, value + 1),
        "EqualNullSafe": (value, value + 1),
        "GreaterThan": (value + 1, _MOST),
        "GreaterThanOrEqual": (value, _MOST),
        "LessThan": (-_MOST, value),
        "LessThanOrEqual": (-_MOST, value + 1),
    }
    return bounds.get(name)
