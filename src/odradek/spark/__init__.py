"""Topics and log directories as tables of Spark, through PySpark alone: sources, sinks and pipelines.

Spark finds the data sources `odradek` and `odradek-segments` by itself wherever this package is installed
(`pyspark_odradek`, `pyspark_odradek_segments`). `register` is for sessions where that is off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

FILTER_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make the formats known to a session, and let it push filters down to them."""
    from odradek.spark.datasource import OdradekSource  # noqa: PLC0415
    from odradek.spark.segments.datasource import SegmentsSource  # noqa: PLC0415

    spark.dataSource.register(OdradekSource)
    spark.dataSource.register(SegmentsSource)
    spark.conf.set(FILTER_PUSHDOWN, "true")


def exactly_once(
    options: Mapping[str, str],
    process: Callable[[DataFrame, Callable[..., int]], object] | None = None,
    *,
    name: str | None = None,
) -> Callable[[DataFrame, int], None]:
    """For `foreachBatch`: writes each micro-batch into topics in one transaction, exactly once.

    query = (
        frame.writeStream.queryName("totals")
        .foreachBatch(exactly_once({"kafka.bootstrap.servers": "localhost:9092", "topic": "totals"}))
        .option("checkpointLocation", "/data/totals")
        .start()
    )

    `options` are those of `format("odradek")`. `process(batch, write)` may call `write(frame, topic="…")`
    several times; all of it is one transaction. `name` is otherwise the query's name.
    """
    from odradek.spark.transactions.foreach_batch import ExactlyOnce  # noqa: PLC0415

    return ExactlyOnce(options, process, name)


def write_exactly_once(frame: DataFrame, options: Mapping[str, str]) -> None:
    """Write a DataFrame that is no stream in one transaction, by tasks that own the partitions."""
    from odradek.spark.transactions.foreach_batch import ExactlyOnce  # noqa: PLC0415

    ExactlyOnce(options, None, None).write_once(frame)
