"""Makes the format `odradek` known to Spark, which imports every top-level package named `pyspark_*`."""

from odradek.spark.datasource import OdradekSource as DefaultSource

__all__ = ["DefaultSource"]
