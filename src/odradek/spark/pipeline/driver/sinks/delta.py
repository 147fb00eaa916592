"""Delta tables with the newest row of each key; needs Delta's jars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType

from odradek.spark.pipeline.definition.model import FileSink
from odradek.spark.pipeline.driver.sinks.newest import newest_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_APP_ID = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"
_IS_DELETED = "_odradek_is_deleted"


def merged_by_key(sink: FileSink, identity: str) -> Callable[[DataFrame, int], None]:
    """A function for foreachBatch; Delta keeps the number of the last micro-batch of `identity`."""

    def write(rows: DataFrame, batch_id: int) -> None:
        spark = rows.sparkSession
        _make_table(rows, sink)
        newest = newest_rows(rows, sink.key, sink.order_by) if sink.order_by else rows
        deleted = F.expr(f"coalesce(({sink.delete_when or 'false'}), false)")
        view = f"_rows_of_{sink.name}"
        newest.withColumn(_IS_DELETED, deleted).createOrReplaceTempView(view)
        spark.conf.set(_APP_ID, f"odradek {identity}")
        spark.conf.set(_VERSION, str(batch_id))
        try:
            spark.sql(_merge(sink, rows.columns, view))
        finally:
            spark.conf.unset(_APP_ID)
            spark.conf.unset(_VERSION)

    return write


def _make_table(rows: DataFrame, sink: FileSink) -> None:
    """An empty table, unless there is one."""
    columns = StructType([StructField(one.name, one.dataType) for one in rows.schema.fields])
    empty = rows.sparkSession.createDataFrame([], columns)
    writer = empty.write.format("delta").options(**sink.options).partitionBy(*sink.partition_by)
    writer.mode("ignore").save(sink.path)


def _merge(sink: FileSink, columns: Sequence[str], view: str) -> str:
    """A row replaces that of its key unless it is older; what is deleted goes, and is not inserted."""
    same_key = " AND ".join(f"there.`{name}` <=> new.`{name}`" for name in sink.key)
    is_newer = f"{_order('new', sink)} >= {_order('there', sink)}" if sink.order_by else "true"
    assigned = ", ".join(f"there.`{name}` = new.`{name}`" for name in columns)
    names = ", ".join(f"`{name}`" for name in columns)
    values = ", ".join(f"new.`{name}`" for name in columns)
    return (
        f"MERGE INTO delta.`{sink.path}` AS there USING {view} AS new ON {same_key} "
        f"WHEN MATCHED AND {is_newer} AND new.{_IS_DELETED} THEN DELETE "
        f"WHEN MATCHED AND {is_newer} THEN UPDATE SET {assigned} "
        f"WHEN NOT MATCHED AND NOT new.{_IS_DELETED} THEN INSERT ({names}) VALUES ({values})"
    )


def _order(table: str, sink: FileSink) -> str:
    """What is compared: a struct, in which a null is less than any value."""
    return f"struct({', '.join(f'{table}.`{name}`' for name in sink.order_by)})"
