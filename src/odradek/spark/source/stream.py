"""The source of a stream: `spark.readStream.format("odradek")`.

Spark makes a reader in a process beside the driver, asks it for offsets as long as the query runs, and makes
another for the tasks. Offsets in checkpoints look like those of Spark's own source: {"topic": {"0": 23}}.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from odradek.client.errors import ClientError
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.spark.errors import DataLost, OtherSubscription, ReadFailed
from odradek.spark.row_filter import RowFilter
from odradek.spark.source.batch import RangePartition
from odradek.spark.source.cluster import ClusterOffsets
from odradek.spark.source.columns import check_columns
from odradek.spark.source.offsets import JsonOffsets, OffsetRange, Offsets, from_json, limited, split, to_json
from odradek.spark.source.options import SourceOptions, source_options
from odradek.spark.source.reading import read_range

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_NO_LIMIT = 2**62
_log = logging.getLogger("odradek.spark")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches beside the driver, reads them in tasks. The options are checked at the first call.

    (Spark hides an error that is raised while it makes the reader.)
    """

    def __init__(
        self, given: Mapping[str, str], schema: StructType, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._given = dict(given)
        self._schema = schema
        self._monotonic = monotonic
        self._checked: SourceOptions | None = None
        self._made: ClusterOffsets | None = None
        self._latest: Offsets | None = None
        self._target: Offsets | None = None
        self._committed: Offsets = {}
        self._last_batch_s: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What tasks need."""
        return self.__dict__ | {"_made": None, "_checked": self.options}

    @property
    def options(self) -> SourceOptions:
        """The options, checked once."""
        if self._checked is None:
            check_columns(self._schema)
            self._checked = source_options(self._given, is_stream=True)
        return self._checked

    @property
    def cluster(self) -> ClusterOffsets:
        """The cluster, with connections that are kept as long as the query runs."""
        if self._made is None:
            self._made = ClusterOffsets(self.options)
        return self._made

    # Offsets

    def initialOffset(self) -> JsonOffsets:  # noqa: N802
        """Where a new query begins."""
        partitions = self.cluster.partitions()
        return to_json(self.cluster.resolved(self.options.start, partitions, is_start=True))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Of a trigger other than once; the lower limit is looked at in `latestOffset`."""
        if self.options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self.options.max_offsets_per_trigger)
        # Spark has no limit by which a trigger with a lower limit differs from one that takes all.
        return ReadMaxRows(_NO_LIMIT) if self.options.min_offsets_per_trigger else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The query ends where the log ends now."""
        self._target = self._latest = self.cluster.latest(self.cluster.partitions())

    def latestOffset(self, start: JsonOffsets, limit: ReadLimit) -> JsonOffsets:  # noqa: N802
        """Where the next micro-batch ends; `start` if there is none yet."""
        begun = from_json(start)
        self._commit(begun)
        latest = self._end(begun)
        begun |= self.cluster.earliest(_begun_anew(begun, latest))
        if isinstance(limit, ReadMaxRows):
            if self._waits(begun, latest):
                return start
            latest = limited(begun, latest, limit.max_rows)
        return to_json(latest)

    def _end(self, start: Offsets) -> Offsets:
        """The end of each partition; before `start` only where the log is that short."""
        if self._target is not None:
            found = self._target
        else:
            found = self._latest = self.cluster.latest(self.cluster.partitions())
        self._check_missing(sorted(start.keys() - found.keys()))
        shorter = sorted(one for one in start.keys() & found.keys() if found[one] < start[one])
        if not shorter:
            return found
        # Committed records may end earlier than what a query read before it was told to read only those.
        written = self.cluster.log_ends(shorter)
        for partition in shorter:
            if written[partition] < start[partition]:
                self._report_loss(
                    f"{partition} ends at offset {written[partition]}, and was read up to "
                    f"{start[partition]}: the topic was made anew, or its log was truncated"
                )
        return found | {one: start[one] for one in shorter if written[one] >= start[one]}

    def _check_missing(self, missing: Sequence[TopicPartition]) -> None:
        """Partitions of the checkpoint that are not read: of other topics, and deleted ones."""
        subscription = self.options.subscription
        others = [one for one in missing if not subscription.includes(one)]
        if others and self.options.fails_on_data_loss:
            raise OtherSubscription(
                f"the checkpoint has offsets of {_names(others)}, which {subscription} does not read: give "
                f"this query a checkpoint of its own, or subscribe to what its checkpoint has"
            )
        if others:
            _log.warning(
                "the checkpoint has offsets of %s, which %s does not read", _names(others), subscription
            )
        deleted = [one for one in missing if subscription.includes(one)]
        if deleted:
            self._report_loss(f"{_names(deleted)} does not exist any more")

    def _waits(self, start: Offsets, latest: Offsets) -> bool:
        """Whether there is less than minOffsetsPerTrigger, and still time; never for available-now."""
        now_s = self._monotonic()
        least = self.options.min_offsets_per_trigger
        has_time = (
            self._last_batch_s is not None
            and (now_s - self._last_batch_s) * 1000 < self.options.max_trigger_delay_ms
        )
        if least is not None and self._target is None and has_time:
            available = sum(end - start.get(one, end) for one, end in latest.items())
            if available < least:
                return True
        self._last_batch_s = now_s
        return False

    def reportLatestOffset(self) -> JsonOffsets | None:  # noqa: N802
        """The ends of the log, for the progress of the query."""
        return None if self._latest is None else to_json(self._latest)

    # One micro-batch

    def partitions(self, start: JsonOffsets, end: JsonOffsets) -> Sequence[InputPartition]:
        """One range of offsets a task; a partition or a log that is new begins with its first record."""
        begun, ends = from_json(start), from_json(end)
        new = ends.keys() - begun.keys()
        if new:
            begun |= self._new_partitions(new)
        begun |= self.cluster.earliest(_begun_anew(begun, ends))
        ranges = [OffsetRange(one, begun[one], ends[one]) for one in sorted(ends)]
        parts = split(ranges, self.options.min_partitions, self.options.max_records_per_partition)
        return [RangePartition(one) for one in parts]

    def _new_partitions(self, new: set[Any]) -> Offsets:
        found = self.cluster.earliest(new)
        for partition, offset in found.items():
            if offset > 0:
                self._report_loss(f"the new partition {partition} begins at offset {offset}, not at 0")
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a task: the rows of one range."""
        if isinstance(partition, RangePartition):
            yield from read_range(self.options, self._schema, RowFilter(), partition.wanted)

    def commit(self, end: JsonOffsets) -> None:
        """Everything before these offsets is done."""
        self._commit(from_json(end))

    def _commit(self, offsets: Offsets) -> None:
        """Show what is done to those who watch the lag of kafka.group.id.

        Spark calls `commit` one micro-batch late, and not for the last one; a micro-batch begins where all
        before it is done.
        """
        if self.options.group_id is None or offsets == self._committed:
            return
        self._committed = offsets
        try:
            self.cluster.commit(self.options.group_id, offsets)
        except (ReadFailed, KafkaError, ClientError) as error:
            # The checkpoint has the offsets that count.
            _log.warning("offsets of group %s were not committed: %s", self.options.group_id, error)

    def stop(self) -> None:
        """The query ends."""
        if self._made is not None:
            self._made.close()

    def _report_loss(self, problem: str) -> None:
        if self.options.fails_on_data_loss:
            raise DataLost(
                f"{problem}; set failOnDataLoss=false to go on with what is there, "
                f"or begin with a new checkpoint"
            )
        _log.warning("%s; the query goes on with what is there", problem)


def _names(partitions: Sequence[TopicPartition]) -> str:
    return ", ".join(map(str, partitions))


def _begun_anew(start: Offsets, ends: Offsets) -> list[TopicPartition]:
    """The partitions that are read from their first record: new ones, and those that end before `start`."""
    return sorted(one for one, end in ends.items() if one not in start or end < start[one])
