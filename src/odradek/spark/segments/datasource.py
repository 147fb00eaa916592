"""The data source `odradek-segments`: a log directory as a table, for reading in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from odradek.spark.source.columns import ddl
from odradek.spark.source.options import includes_headers

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from odradek.spark.segments.batch import SegmentDataSourceReader


class SegmentsSource(DataSource):
    """`format("odradek-segments")`."""

    @classmethod
    def name(cls) -> str:
        """The word for `format` and `USING`."""
        return "odradek-segments"

    def schema(self) -> str:
        """All columns, when none are chosen by `.schema(…)`."""
        return ddl(includes_headers=includes_headers(self.options))

    def reader(self, schema: StructType) -> SegmentDataSourceReader:
        """For `spark.read`."""
        from odradek.spark.segments.batch import new_reader  # noqa: PLC0415

        return new_reader(self.options, schema)
