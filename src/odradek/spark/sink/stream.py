"""The sink of a stream: `df.writeStream.format("odradek")`.

Spark makes a writer on the driver for each micro-batch, and one more in another process for its commit.
All output modes append: a stream in complete mode writes its whole result again each time, as into
Spark's own Kafka sink.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from odradek.spark.sink.delivery import Delivery, NewDelivery
from odradek.spark.sink.options import sink_options
from odradek.spark.sink.rows import row_layout

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def new_stream_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool, new_delivery: NewDelivery
) -> StreamWriter:
    """What Spark asks the data source for; a ConfigError or WrongRows stops the query before any task."""
    checked = sink_options(options, for_stream=True)
    return StreamWriter(new_delivery(checked, row_layout(schema, checked)))


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the partitions of one micro-batch, one a task."""

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In a task: deliver one partition's rows."""
        return self.delivery.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """On the driver, after all tasks of a micro-batch."""
        self.delivery.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """On the driver, when a task of a micro-batch has failed for good."""
        self.delivery.abort(messages, batchId)
