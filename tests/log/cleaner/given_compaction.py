"""Compacted logs for the tests of this folder, and what is left in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from log.given_logs import NOW_MS, PARTITION, a_marker, open_log
from odradek.common.ids import TopicPartition
from odradek.log.cleaner.config import CleanerConfig
from odradek.log.cleaner.manager import CleanerManager, CleaningResult
from odradek.log.config import LogConfig
from odradek.log.partition.leader_batches import Origin
from odradek.log.partition.partition_log import PartitionLog
from odradek.records.batch import BatchHeader, has_valid_crc, iterate_headers
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.kernels.record_objects import Record
from odradek.records.record import read_records

COMPACTED = LogConfig(
    cleanup_policy=("compact",),
    internal_segment_bytes=2000,
    index_interval_bytes=200,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=1000,
)

KeyValue = tuple[bytes | None, bytes | None]


def compacted_log(path: Path, **changes: object) -> PartitionLog:
    """An empty log of a compacted topic, in a log directory of its own."""
    path.mkdir(exist_ok=True)
    return open_log(path / str(PARTITION), COMPACTED.replace(**changes))


def append(
    log: PartitionLog,
    pairs: Sequence[KeyValue],
    *,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    is_transactional: bool = False,
    now_ms: int = NOW_MS,
) -> int:
    """Append one batch of (key, value) pairs; its base offset. `producer` is id, epoch and sequence."""
    batch = build_batch(
        [Record(index, now_ms + index, key, value) for index, (key, value) in enumerate(pairs)],
        codec=codec,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        is_transactional=is_transactional,
    )
    base_offset = log.append_as_leader(batch, 0, now_ms=now_ms).base_offset
    log.update_high_watermark(log.log_end_offset)
    return base_offset


def end_transaction(log: PartitionLog, producer_id: int, *, is_commit: bool, epoch: int = 0) -> int:
    """Append the marker; its offset."""
    marker = a_marker(producer_id, is_commit=is_commit, producer_epoch=epoch)
    offset = log.append_as_leader(marker, 0, now_ms=NOW_MS, origin=Origin.COORDINATOR).base_offset
    log.update_high_watermark(log.log_end_offset)
    return offset


def roll(log: PartitionLog) -> None:
    """Close the active segment, so that it can be cleaned."""
    log.roll(NOW_MS)


def manager_of(*logs: PartitionLog, config: CleanerConfig | None = None) -> CleanerManager:
    served: Mapping[TopicPartition, PartitionLog] = {log.partition: log for log in logs}
    return CleanerManager(config or CleanerConfig(), logs[0].directory.files, served)


def clean(log: PartitionLog, now_ms: int = NOW_MS) -> CleaningResult:
    """Roll, then clean to the end; must have something to do, and succeed."""
    roll(log)
    outcome = manager_of(log).run(now_ms)
    assert outcome is not None
    assert outcome.problem is None
    return outcome


class Left(NamedTuple):
    """A batch as it lies in a segment."""

    segment: int
    header: BatchHeader
    records: list[Record]


def batches_of(log: PartitionLog) -> list[Left]:
    """Every batch of every segment, with CRCs checked."""
    found = []
    for segment in log.segments:
        content = segment.log.read(0, segment.size)
        for position, header in iterate_headers(content):
            assert has_valid_crc(content, position, header)
            records = read_records(content, position, max_bytes=1 << 24)
            assert len(records) == header.record_count
            found.append(Left(segment.base_offset, header, records))
    return found


def records_of(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of every record but those of markers."""
    return [
        (record.offset, record.key, record.value)
        for left in batches_of(log)
        if not left.header.is_control
        for record in left.records
    ]
