# cython: annotation_typing=False
"""What the short way of a fetch reads: runs of log files, as long as everything about them is ordinary.

Compiled by Cython (short_reads.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from typing import Any

from odradek.broker.requests.file_parts import LogPart
from odradek.broker.requests.services import Services
from odradek.common.errors import KafkaError
from odradek.log.partition.read_ahead import notice_cached
from odradek.log.partition.reading import LogEnd
from odradek.net.send_queue import SMALL_FILE_BYTES
from odradek.protocol.fetch_frames import READ_COMMITTED, TOPIC_IDS_FROM, FetchFrame, FoundRecords
from odradek.replication.partition import NO_EPOCH, Partition

try:
    import cython
except ImportError:
    from odradek.common import cython_shim as cython

if cython.compiled:
    from cython.cimports.odradek.log.partition.read_ahead import is_warm
    from cython.cimports.odradek.log.partition.reading import aborted_between, find_batches
else:
    from odradek.log.partition.read_ahead import is_warm
    from odradek.log.partition.reading import aborted_between, find_batches

NO_RECORDS = b""


class Reads:
    """The reads of one request, in order; nothing is counted before all of them were ordinary."""

    def __init__(self, services: Services, request: FetchFrame) -> None:
        self.services = services
        self.request = request
        self._partitions: dict[Any, Partition] = services.replicas.partitions
        self._topic_names: dict[Any, str] = services.replicas.topic_names
        self._max_bytes = min(request.max_bytes, services.fetch_max_bytes)
        self.bytes_read = 0
        self._sent: list[Any] = []

    def partition(self, key: Any) -> Partition | None:
        """The partition of a topic that is told by its id in newer versions; None if it is not here."""
        topic, index = key
        if self.request.version >= TOPIC_IDS_FROM:
            topic = self._topic_names.get(topic)
        return self._partitions.get((topic, index))

    def read(self, partition: Partition | None, asked: Any) -> FoundRecords | None:
        """What there is for a consumer; None if it is not ordinary to tell."""
        if partition is None:
            return None
        state = partition.state
        epoch = asked.current_leader_epoch
        if state.leader_id != partition.broker_id or epoch not in (NO_EPOCH, state.leader_epoch):
            return None
        log = partition.log
        epoch = asked.last_fetched_epoch
        if (epoch >= 0 and epoch != log.epochs.latest) or log.producers.first_unstable_offset is not None:
            return None
        high_watermark = log.high_watermark
        offset = asked.fetch_offset
        if offset < log.log_start_offset or offset > high_watermark:
            return None
        records: Any = NO_RECORDS
        if offset < high_watermark:
            records = self._find(log, offset, asked.partition_max_bytes)
            if records is None:
                return None
            if records:
                self.bytes_read += len(records)
                self._sent.append((partition.traffic, len(records)))
        return FoundRecords(asked.partition, high_watermark, high_watermark, log.log_start_offset, records)

    def _find(self, log: Any, offset: int, max_bytes: int) -> Any:
        """The records, none if the answer is full; None if they are not at hand.

        Few are bytes, more are a part of their file: a copy is cheaper than one more call and packet.
        """
        request = self.request
        max_bytes = min(max_bytes, self._max_bytes)
        if not is_warm(log, offset, max_bytes) and not notice_cached(log, offset, max_bytes):
            return None
        max_bytes = min(max_bytes, max(self._max_bytes - self.bytes_read, 0))
        active = log.segments.active
        end = LogEnd(active, active.size, log.log_end_offset)
        limit = log.high_watermark
        try:
            # Only the first partition with data may pass the limits, else an answer could have any size.
            run = find_batches(log.segments, end, offset, limit, max_bytes, self.bytes_read == 0)
            if run is None:
                return NO_RECORDS
            if request.isolation_level == READ_COMMITTED and aborted_between(
                log.segments, offset, run.upper_offset
            ):
                return None
            size = run.end - run.start
            if size > SMALL_FILE_BYTES:
                return LogPart(run.range())
            records = run.segment.log.read(run.start, size)
            return records if len(records) == size else None
        except (OSError, KafkaError):
            return None  # it will happen again where it is told

    def is_enough(self) -> bool:
        """Whether the answer may go out now."""
        return self.bytes_read >= self.request.min_bytes or self.request.max_wait_ms <= 0

    def count(self) -> None:
        """The answer goes out."""
        for traffic, size in self._sent:
            traffic.bytes_out += size
