"""The source of a batch: `spark.read.format("odradek")`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from odradek.spark.errors import DataLost
from odradek.spark.pushdown import PushFilters
from odradek.spark.row_filter import RowFilter
from odradek.spark.source.cluster import ClusterOffsets
from odradek.spark.source.columns import check_columns
from odradek.spark.source.offsets import OffsetRange, split
from odradek.spark.source.options import SourceOptions, source_options
from odradek.spark.source.reading import read_range

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class RangePartition(InputPartition):
    """The work of one task."""

    def __init__(self, wanted: OffsetRange) -> None:
        super().__init__(wanted)
        self.wanted = wanted


def new_reader(options: Mapping[str, str], schema: StructType) -> BatchReader:
    """What Spark asks the data source for; a ConfigError or WrongColumns stops the query before any task."""
    check_columns(schema)
    return BatchReader(source_options(options, is_stream=False), schema)


class BatchReader(DataSourceReader):
    """Plans on the driver, once for each query; reads in tasks. It is pickled and sent to them."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.row_filter = RowFilter()

    @property
    def pushFilters(self) -> PushFilters:  # noqa: N802
        """On the driver, before `partitions`, if Spark pushes filters down."""
        return PushFilters(self._narrow)

    def _narrow(self, row_filter: RowFilter) -> None:
        self.row_filter = row_filter

    def partitions(self) -> list[InputPartition]:
        """On the driver: one range of offsets a task."""
        cluster = ClusterOffsets(self.options)
        try:
            ranges = self._ranges(cluster)
        finally:
            cluster.close()
        options = self.options
        parts = split(ranges, options.min_partitions, options.max_records_per_partition)
        # Spark takes an empty list for one task without a range.
        return [RangePartition(one) for one in parts] or [InputPartition(None)]

    def _ranges(self, cluster: ClusterOffsets) -> list[OffsetRange]:
        options, row_filter = self.options, self.row_filter
        partitions = cluster.partitions()
        start = cluster.resolved(options.start, partitions, is_start=True)
        end = cluster.resolved(options.end, partitions, is_start=False)
        for partition in partitions:
            if start[partition] > end[partition] and options.fails_on_data_loss:
                raise DataLost(
                    f"{partition} is to be read from offset {start[partition]} to {end[partition]}: "
                    f"set an end that is not before the start"
                )
        chosen = [partition for partition in partitions if row_filter.has(partition)]
        if row_filter.start_time_ms is not None:
            found = cluster.at_times(dict.fromkeys(chosen, max(0, row_filter.start_time_ms)))
            late = {one: end[one] if found[one] < 0 else found[one] for one in chosen}
            start |= {one: max(start[one], late[one]) for one in chosen}
        return [
            OffsetRange(one, max(start[one], row_filter.start_offset), min(end[one], row_filter.end_offset))
            for one in chosen
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a task: the rows of one range."""
        if isinstance(partition, RangePartition):
            yield from read_range(self.options, self.schema, self.row_filter, partition.wanted)
