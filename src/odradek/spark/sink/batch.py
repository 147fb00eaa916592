"""The sink of a batch: `df.write.format("odradek").mode("append").save()`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from odradek.common.errors import ConfigError
from odradek.spark.sink.delivery import Delivery, NewDelivery
from odradek.spark.sink.options import sink_options
from odradek.spark.sink.rows import row_layout

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def new_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool, new_delivery: NewDelivery
) -> BatchWriter:
    """What Spark asks the data source for; a ConfigError or WrongRows stops the job before any task."""
    if overwrite:
        raise ConfigError('a topic cannot be overwritten, only appended to: use mode("append")')
    checked = sink_options(options)
    return BatchWriter(new_delivery(checked, row_layout(schema, checked)))


class BatchWriter(DataSourceArrowWriter):
    """Writes the partitions of one DataFrame, one a task."""

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In a task: deliver one partition's rows."""
        return self.delivery.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver, after all tasks."""
        self.delivery.commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver, when a task has failed for good."""
        self.delivery.abort(messages)
