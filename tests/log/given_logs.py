"""Batches and logs for the tests of this folder: real files in a temporary directory, time as an argument."""

from __future__ import annotations

from pathlib import Path

from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.files.file_system import FileSystem
from odradek.log.files.log_file import HandleCache
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.partition.reading import Isolation
from odradek.log.recovery.log_loader import NEW_PARTITION, Checkpoints, load_log
from odradek.records.batch import iterate_headers
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.control import ControlType, EndTransactionMarker, build_end_transaction_marker
from odradek.records.kernels.record_objects import Record
from odradek.records.record import read_records

PARTITION = TopicPartition("orders", 0)
NOW_MS = 1_700_000_000_000
SMALL = LogConfig(internal_segment_bytes=4096, index_interval_bytes=256)


def a_batch(
    count: int = 1,
    *,
    timestamp_ms: int = NOW_MS,
    value: bytes = b"value",
    key: bytes | None = b"key",
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    base_offset: int = 0,
    leader_epoch: int = -1,
    is_transactional: bool = False,
) -> bytearray:
    """A batch as a producer sends it, or with offset and epoch as a leader does."""
    return build_batch(
        [Record(base_offset + i, timestamp_ms, key, value) for i in range(count)],
        base_offset=base_offset,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        partition_leader_epoch=leader_epoch,
        is_transactional=is_transactional,
    )


def a_marker(
    producer_id: int,
    *,
    is_commit: bool,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    timestamp_ms: int = NOW_MS,
) -> bytearray:
    """The control batch that ends a transaction."""
    kind = ControlType.COMMIT if is_commit else ControlType.ABORT
    return build_end_transaction_marker(
        EndTransactionMarker(kind, coordinator_epoch),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timestamp_ms=timestamp_ms,
    )


def open_log(
    path: Path | str,
    config: LogConfig = SMALL,
    *,
    checkpoints: Checkpoints = NEW_PARTITION,
    files: FileSystem | None = None,
    now_ms: int = NOW_MS,
    may_cut_committed: bool = False,
) -> PartitionLog:
    """The log in a directory, made if it is not there."""
    Path(path).mkdir(exist_ok=True)
    handles = HandleCache(files or FileSystem(), 64)
    return load_log(
        PARTITION,
        str(path),
        config,
        handles,
        now_ms=now_ms,
        checkpoints=checkpoints,
        may_cut_committed=may_cut_committed,
    )


def fill(
    log: PartitionLog, batches: int, *, records: int = 2, leader_epoch: int = 0, size: int = 100
) -> None:
    """Append batches whose values begin with their offsets and whose times rise by a second each."""
    for _ in range(batches):
        at = log.log_end_offset
        value = b"%d:" % at + b"x" * size
        batch = a_batch(records, value=value, timestamp_ms=NOW_MS + at * 1000)
        log.append_as_leader(batch, leader_epoch, now_ms=NOW_MS + at * 1000)


def read_all(log: PartitionLog, start: int | None = None, max_bytes: int = 10_000) -> list[Record]:
    """Every record from `start`, or the log start, to the log end, by reads of `max_bytes`."""
    offset = log.log_start_offset if start is None else start
    records: list[Record] = []
    while offset < log.log_end_offset:
        fetched = log.read(offset, max_bytes, isolation=Isolation.LOG_END)
        if fetched.range is None:
            break
        content = fetched.range.read()
        assert len(content) == fetched.range.length
        for position, header in iterate_headers(content):
            records += [r for r in read_records(content, position, max_bytes=1 << 24) if r.offset >= offset]
            offset = header.next_offset
    return records


def offsets_and_values(log: PartitionLog) -> list[tuple[int, bytes | None]]:
    """What a reader sees, for comparing logs."""
    return [(record.offset, record.value) for record in read_all(log)]


def log_bytes(path: Path | str) -> dict[str, bytes]:
    """The `.log` files of a directory by name."""
    return {file.name: file.read_bytes() for file in sorted(Path(path).glob("*.log"))}


def after_crash(recovery_point: int = 0, high_watermark: int = 0, log_start_offset: int = 0) -> Checkpoints:
    """What a broker finds that was not stopped cleanly."""
    return Checkpoints(recovery_point, high_watermark, log_start_offset, is_clean=False)


def after_clean_stop(log: PartitionLog) -> Checkpoints:
    """What a broker finds after `log` was closed."""
    return Checkpoints(log.recovery_point, log.high_watermark, log.log_start_offset, is_clean=True)
