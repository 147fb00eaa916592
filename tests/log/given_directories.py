"""Whole log directories for tests: partitions, segments, codecs, epochs, transactions; stopped or not."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from log.given_logs import NOW_MS, a_batch, a_marker
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.directories.log_manager import LogManager
from odradek.log.partition.leader_batches import Origin
from odradek.log.partition.partition_log import PartitionLog
from odradek.records.compression import Codec

SMALL_SEGMENTS = LogConfig(internal_segment_bytes=3000, index_interval_bytes=300)
TOPIC_ID = UUID("5f0a8c0e-3f65-4f6c-9f8e-0d3c1b2a4e5f")
ORDERS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]


def open_manager(path: Path, config: LogConfig = SMALL_SEGMENTS) -> LogManager:
    """A manager over one directory, started."""
    manager = LogManager([str(path)], broker_id=1, cluster_id="AAAAAAAAAAAAAAAAAAAAAQ")
    manager.start(NOW_MS, lambda _: config)
    return manager


def a_log_directory(path: Path, *, batches: int = 30, is_clean: bool = True) -> Path:
    """A directory with the two partitions of one topic, as a broker leaves it."""
    manager = open_manager(path)
    for partition in ORDERS:
        log = manager.get_or_create(partition, SMALL_SEGMENTS, now_ms=NOW_MS, topic_id=TOPIC_ID)
        fill_with_everything(log, batches)
        log.update_high_watermark(log.log_end_offset)
    if is_clean:
        manager.stop(NOW_MS)
    else:
        for job in manager.checkpoints():
            job.run()
        manager.abandon()
    return path


def fill_with_everything(log: PartitionLog, batches: int, second_epoch: int = 3) -> None:
    """Every codec, two leader epochs, transactions that commit and abort around each other."""
    sequences = {7: 0, 8: 0}
    for number in range(batches):
        epoch = 0 if number < batches // 2 else second_epoch
        append_batch(log, number, epoch)
        producer_id = 7 + number % 2
        batch = a_batch(
            2,
            value=b"in transaction %d" % number,
            timestamp_ms=_time_ms(number),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequences[producer_id],
            is_transactional=True,
        )
        sequences[producer_id] += 2
        log.append_as_leader(batch, epoch, now_ms=_time_ms(number))
        if number % 4 > 1:
            marker = a_marker(producer_id, is_commit=number % 8 > 3, timestamp_ms=_time_ms(number))
            log.append_as_leader(marker, epoch, now_ms=_time_ms(number), origin=Origin.COORDINATOR)


def append_batch(log: PartitionLog, number: int, epoch: int = 0) -> None:
    """Append a batch whose values contain its number; the codecs alternate."""
    batch = a_batch(
        3,
        value=b"%d of a batch" % number * 4,
        timestamp_ms=_time_ms(number),
        codec=Codec(number % len(Codec)),
    )
    log.append_as_leader(batch, epoch, now_ms=_time_ms(number))


def _time_ms(number: int) -> int:
    """Rising, but every third batch is a little late."""
    return NOW_MS + number * 1000 - (number % 3 == 2) * 1500


def files_below(path: Path) -> list[Path]:
    """Every file with content, in a fixed order; the lock is none of the log's."""
    return sorted(p for p in path.rglob("*") if p.is_file() and p.name != ".lock" and p.stat().st_size > 0)
