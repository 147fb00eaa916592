"""Delta tables whose rows replace those with the same key; needs Delta's jars."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.spark.pipeline.definition.model import FileSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_APP_ID = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"


def merged_by_key(sink: FileSink) -> Callable[[DataFrame, int], None]:
    """A function for foreachBatch; a micro-batch that is repeated is recognised by its id and left out."""

    def write(rows: DataFrame, batch_id: int) -> None:
        spark = rows.sparkSession
        spark.conf.set(_APP_ID, f"odradek {sink.path}")
        spark.conf.set(_VERSION, str(batch_id))
        try:
            if not _is_table(rows, sink.path):
                writer = rows.write.format("delta").options(**sink.options)
                writer.partitionBy(*sink.partition_by).mode("append").save(sink.path)
                return
            view = f"_rows_of_{sink.name}"
            rows.createOrReplaceTempView(view)
            on = " AND ".join(f"there.`{name}` <=> new.`{name}`" for name in sink.key)
            spark.sql(
                f"MERGE INTO delta.`{sink.path}` AS there USING {view} AS new ON {on} "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
        finally:
            spark.conf.unset(_APP_ID)
            spark.conf.unset(_VERSION)

    return write


def _is_table(rows: DataFrame, path: str) -> bool:
    jvm = rows.sparkSession._jvm
    return bool(jvm.io.delta.tables.DeltaTable.isDeltaTable(rows.sparkSession._jsparkSession, path))
