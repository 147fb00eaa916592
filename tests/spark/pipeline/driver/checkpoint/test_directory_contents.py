"""Which changes the files of a sink can take."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from odradek.spark.pipeline.definition.declare import to_delta, to_parquet, to_snapshot
from odradek.spark.pipeline.definition.model import Sink
from odradek.spark.pipeline.driver.checkpoint.directory_contents import contents_difference, contents_of

LONG, TEXT = LongType(), StringType()
SNAPSHOT = to_snapshot("out", source="rows", key="id", order_by="at")
PARQUET = to_parquet("out", source="rows")


def columns(*, is_nullable: bool = True, **types: DataType) -> StructType:
    return StructType([StructField(name, one, is_nullable) for name, one in types.items()])


def reason(sink: Sink, before: StructType, now: StructType, changed: Sink | None = None) -> str | None:
    """Why the change is refused; what was kept comes from a file."""
    kept = json.loads(json.dumps(contents_of(sink, before)))
    return contents_difference(kept, contents_of(changed or sink, now))


ROWS = columns(id=LONG, at=TimestampType(), city=TEXT)


@pytest.mark.parametrize("sink", [SNAPSHOT, PARQUET])
def test_columns_may_be_added_and_no_other_change_of_them_is_taken(sink):
    assert (
        reason(sink, ROWS, columns(is_nullable=False, city=TEXT, id=LONG, at=TimestampType(), n=LONG)) is None
    )
    renamed = columns(id=LONG, at=TimestampType(), town=TEXT)
    assert reason(sink, ROWS, renamed) == "its directory has the column city, which is no longer there"
    assert reason(sink, ROWS, columns(id=TEXT, at=TimestampType(), city=TEXT)) == (
        "the column id in its directory is of the type bigint, and is now string"
    )


def test_columns_within_columns_are_compared_too():
    line = columns(sku=TEXT)
    before = columns(lines=ArrayType(line), tags=MapType(TEXT, line), one=line)
    assert reason(PARQUET, before, before) is None
    longer = columns(sku=TEXT, n=LONG)
    assert (
        reason(PARQUET, before, columns(lines=ArrayType(longer), tags=MapType(TEXT, longer), one=longer))
        is None
    )
    assert (
        reason(PARQUET, before, columns(lines=ArrayType(TEXT), tags=MapType(TEXT, line), one=line))
        == "the column lines[] in its directory is of the type struct, and is now string"
    )
    assert (
        reason(
            PARQUET, before, columns(lines=ArrayType(line), tags=MapType(TEXT, columns(sku=LONG)), one=line)
        )
        == "the column tags.value.sku in its directory is of the type string, and is now bigint"
    )
    assert (
        reason(PARQUET, before, columns(lines=ArrayType(line), tags=MapType(TEXT, line), one=longer)) is None
    )


def test_keys_orders_and_partitions_stay():
    by_city = to_snapshot("out", source="rows", key=["id", "city"], order_by="at")
    assert reason(SNAPSHOT, ROWS, ROWS, by_city) == (
        "the rows of one key in its directory are by key id, and now by id, city"
    )
    by_id = to_snapshot("out", source="rows", key="id", order_by="id")
    assert "are by order_by at, and now by id" in str(reason(SNAPSHOT, ROWS, ROWS, by_id))
    parted = to_parquet("out", source="rows", partition_by="city")
    assert reason(PARQUET, ROWS, ROWS, parted) == (
        "the files in its directory are by partition_by nothing, and now by city"
    )


def test_what_a_directory_does_not_hold_for_later_may_change():
    whole = to_snapshot("out", source="rows", key="id", mode="complete")
    assert reason(whole, ROWS, columns(n=LONG)) is None  # each micro-batch writes all rows anew
    delta = to_delta("out", source="rows")
    assert reason(delta, ROWS, columns(n=LONG)) is None  # Delta has rules and options of its own
    assert contents_difference(None, contents_of(SNAPSHOT, ROWS)) is None  # of an earlier version
