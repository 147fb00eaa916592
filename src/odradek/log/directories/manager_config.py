"""The settings of the log manager."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.common.config import Kind, at_least, setting
from odradek.log.partition.log_writer import PRODUCER_ID_EXPIRATION_MS


@dataclass(frozen=True, slots=True)
class LogManagerConfig:
    """Threads and intervals."""

    num_recovery_threads_per_data_dir: int = setting(
        "num.recovery.threads.per.data.dir",
        Kind.INT,
        2,
        "Threads that load the partitions of one log directory at start, and close them at the stop.",
        at_least(1),
    )
    producer_id_expiration_ms: int = setting(
        "producer.id.expiration.ms",
        Kind.INT,
        PRODUCER_ID_EXPIRATION_MS,
        "How long the state of an idle producer is kept.",
        at_least(1),
    )
    producer_id_expiration_check_interval_ms: int = setting(
        "producer.id.expiration.check.interval.ms",
        Kind.INT,
        600_000,
        "How often producers that have been silent for producer.id.expiration.ms are looked for.",
        at_least(1),
        is_dynamic=False,
        is_internal=True,
    )
    log_retention_check_interval_ms: int = setting(
        "log.retention.check.interval.ms",
        Kind.LONG,
        300_000,
        "How often logs are looked over for segments that may go.",
        at_least(1),
        is_dynamic=False,
    )
    log_flush_offset_checkpoint_interval_ms: int = setting(
        "log.flush.offset.checkpoint.interval.ms",
        Kind.INT,
        60_000,
        "The longest time between two writes of the recovery points; they are written with the others.",
        at_least(0),
        is_dynamic=False,
    )
    log_flush_start_offset_checkpoint_interval_ms: int = setting(
        "log.flush.start.offset.checkpoint.interval.ms",
        Kind.INT,
        60_000,
        "The longest time between two writes of the log start offsets; they are written with the others.",
        at_least(0),
        is_dynamic=False,
    )


DEFAULTS = LogManagerConfig()
