"""Topics and log directories as tables of Spark, through PySpark alone: sources, sinks and pipelines.

Spark finds the data sources `odradek` and `odradek-segments` by itself wherever this package is installed
(`pyspark_odradek`, `pyspark_odradek_segments`). `register` is for sessions where that is off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILTER_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make the formats known to a session, and let it push filters down to them."""
    from odradek.spark.datasource import OdradekSource  # noqa: PLC0415
    from odradek.spark.segments.datasource import SegmentsSource  # noqa: PLC0415

    spark.dataSource.register(OdradekSource)
    spark.dataSource.register(SegmentsSource)
    spark.conf.set(FILTER_PUSHDOWN, "true")
