"""The segment source of a batch: `spark.read.format("odradek-segments").load("/var/lib/odradek")`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from odradek.common.errors import OdradekError
from odradek.log.offline.read_only import PartitionFiles, find_partitions, list_partition
from odradek.log.offline.scan import ScanRange
from odradek.log.offline.scan_parts import ScanPart, plan_parts, scan_part
from odradek.spark.errors import ReadFailed, UnknownTopic
from odradek.spark.pushdown import PushFilters
from odradek.spark.row_filter import RowFilter
from odradek.spark.segments.options import SegmentOptions, segment_options
from odradek.spark.source.columns import ColumnWriter, check_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_BATCH_ROWS = 65_536


class SegmentPartition(InputPartition):
    """The work of one task: a segment, or a part of one."""

    def __init__(self, topic: str, part: ScanPart) -> None:
        super().__init__(part)
        self.topic = topic
        self.part = part


def new_reader(options: Mapping[str, str], schema: StructType) -> SegmentDataSourceReader:
    """What Spark asks the data source for; a ConfigError or WrongColumns stops the query before any task."""
    check_columns(schema)
    return SegmentDataSourceReader(segment_options(options), schema)


class SegmentDataSourceReader(DataSourceReader):
    """Plans on the driver, once for each query; reads in tasks. It is pickled and sent to them."""

    def __init__(self, options: SegmentOptions, schema: StructType) -> None:
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
        """On the driver: one part of a segment a task."""
        with _reported(self.options.path):
            found: list[InputPartition] = [
                SegmentPartition(files.partition.topic, part)
                for files in self._partition_files()
                if self.row_filter.has(files.partition)
                for part in plan_parts(files.path, self._range(), self.options.part_bytes)
            ]
        # Spark takes an empty list for one task without a part.
        return found or [InputPartition(None)]

    def _partition_files(self) -> list[PartitionFiles]:
        """The partitions that are read; UnknownTopic if a topic that is named has none."""
        every = [list_partition(path) for path in find_partitions(self.options.path)]
        missing = self.options.topics - {files.partition.topic for files in every}
        if missing:
            raise UnknownTopic(f"{self.options.path} has no partition of topic {min(missing)!r}")
        return [files for files in every if self.options.has(files.partition.topic)]

    def _range(self) -> ScanRange:
        narrowed = self.row_filter
        return ScanRange(
            start_offset=narrowed.start_offset,
            end_offset=narrowed.end_offset,
            start_timestamp_ms=narrowed.start_time_ms,
            read_committed=self.options.reads_committed,
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a task: the rows of one part."""
        if not isinstance(partition, SegmentPartition):
            return
        writer = ColumnWriter(self.schema, partition.topic)
        with _reported(partition.part.directory):
            for rows in scan_part(partition.part):
                rows = self.row_filter.rows(rows)
                batch = writer.batch(rows) if rows.num_rows else None
                for start in range(0, rows.num_rows, _BATCH_ROWS):
                    assert batch is not None
                    yield batch.slice(start, _BATCH_ROWS)


@contextmanager
def _reported(path: str) -> Iterator[None]:
    """Errors as one sentence; damage names its file and position."""
    try:
        yield
    except FileNotFoundError as error:
        raise ReadFailed(
            f"{error.filename or path} is not there: give a directory that is mounted on every executor; "
            f"while a broker runs, retention and cleaning remove segments, so read a copy or a snapshot"
        ) from None
    except OSError as error:
        raise ReadFailed(f"cannot read {error.filename or path}: {error.strerror or error}") from None
    except UnknownTopic:
        raise
    except OdradekError as error:
        raise ReadFailed(str(error)) from None
