"""Makes the format `odradek-segments` known to Spark, which imports every package named `pyspark_*`."""

from odradek.spark.segments.datasource import SegmentsSource as DefaultSource

__all__ = ["DefaultSource"]
