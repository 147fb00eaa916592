"""The data source `odradek`: topics as tables, for reading and writing, in batches and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from odradek.spark.source.columns import ddl
from odradek.spark.source.options import includes_headers

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from odradek.spark.sink.batch import BatchWriter
    from odradek.spark.sink.stream import StreamWriter
    from odradek.spark.source.batch import BatchReader
    from odradek.spark.source.stream import StreamReader

# Spark makes a data source in several short-lived processes; each imports what it needs.


class OdradekSource(DataSource):
    """`format("odradek")`."""

    @classmethod
    def name(cls) -> str:
        """The word for `format` and `USING`."""
        return "odradek"

    def schema(self) -> str:
        """All columns, when none are chosen by `.schema(…)`."""
        return ddl(includes_headers=includes_headers(self.options))

    def reader(self, schema: StructType) -> BatchReader:
        """For `spark.read`."""
        from odradek.spark.source.batch import new_reader  # noqa: PLC0415

        return new_reader(self.options, schema)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802
        """For `spark.readStream`."""
        from odradek.spark.source.stream import StreamReader  # noqa: PLC0415

        return StreamReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """For `df.write`."""
        from odradek.spark.deliveries import new_delivery  # noqa: PLC0415
        from odradek.spark.sink.batch import new_writer  # noqa: PLC0415

        return new_writer(self.options, schema, overwrite, new_delivery)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        """For `df.writeStream`."""
        from odradek.spark.deliveries import new_delivery  # noqa: PLC0415
        from odradek.spark.sink.stream import new_stream_writer  # noqa: PLC0415

        return new_stream_writer(self.options, schema, overwrite, new_delivery)
