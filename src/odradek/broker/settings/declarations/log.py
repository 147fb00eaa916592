"""Log directories and the defaults of topics."""

from __future__ import annotations

from odradek.broker.settings.declarations.declare import (
    BOOLEAN,
    DOUBLE,
    HIGH,
    INT,
    LIST,
    LONG,
    STRING,
    cluster_wide,
    read_only,
    theme,
)
from odradek.common.config import LONG_MAX, at_least, between, each_of, one_of
from odradek.log.config import GZIP_LEVEL


@theme
class LogSettings:
    """Directories, and the broker-wide values behind each topic's own settings."""

    log_dir: tuple[str, ...] = read_only(
        "log.dir",
        LIST,
        ("/tmp/kafka-logs",),
        "Directories for logs where log.dirs is not given.",
        importance=HIGH,
    )
    log_dirs: tuple[str, ...] | None = read_only(
        "log.dirs",
        LIST,
        None,
        "Directories for logs, best on disks of their own; a failed one leaves the others serving.",
        importance=HIGH,
    )
    log_segment_bytes: int = cluster_wide(
        "log.segment.bytes",
        INT,
        1_073_741_824,
        "Size at which a segment is closed.",
        at_least(1_048_576),
        importance=HIGH,
    )
    log_segment_delete_delay_ms: int = cluster_wide(
        "log.segment.delete.delay.ms",
        LONG,
        60_000,
        "Time between renaming a file to .deleted and removing it.",
        at_least(0),
        importance=HIGH,
    )
    log_roll_ms: int | None = cluster_wide(
        "log.roll.ms",
        LONG,
        None,
        "Age at which a segment is closed; without a value log.roll.hours counts.",
        importance=HIGH,
    )
    log_roll_hours: int = read_only(
        "log.roll.hours",
        INT,
        168,
        "Age in hours at which a segment is closed, where log.roll.ms is not given.",
        at_least(1),
        importance=HIGH,
    )
    log_roll_jitter_ms: int | None = cluster_wide(
        "log.roll.jitter.ms",
        LONG,
        None,
        "The most that is taken off the age at random; without a value log.roll.jitter.hours counts.",
        importance=HIGH,
    )
    log_roll_jitter_hours: int = read_only(
        "log.roll.jitter.hours",
        INT,
        0,
        "The largest random jitter in hours that the age is cut by, where log.roll.jitter.ms is not given.",
        at_least(0),
        importance=HIGH,
    )
    log_retention_ms: int | None = cluster_wide(
        "log.retention.ms",
        LONG,
        None,
        "Age at which segments go, -1 for never; without a value log.retention.minutes counts.",
        importance=HIGH,
    )
    log_retention_minutes: int | None = read_only(
        "log.retention.minutes",
        INT,
        None,
        "Age in minutes at which segments go, after log.retention.ms and before log.retention.hours.",
        importance=HIGH,
    )
    log_retention_hours: int = read_only(
        "log.retention.hours",
        INT,
        168,
        "Age in hours at which segments are deleted, where neither milliseconds nor minutes are given.",
        importance=HIGH,
    )
    log_retention_bytes: int = cluster_wide(
        "log.retention.bytes",
        LONG,
        -1,
        "Size of a partition at which its oldest segments go; -1 keeps any size.",
        importance=HIGH,
    )
    log_cleanup_policy: tuple[str, ...] = cluster_wide(
        "log.cleanup.policy",
        LIST,
        ("delete",),
        "What happens to old segments: delete drops them, compact keeps the last value of each key.",
        each_of("compact", "delete"),
    )
    log_cleaner_delete_retention_ms: int = cluster_wide(
        "log.cleaner.delete.retention.ms",
        LONG,
        86_400_000,
        "How long compaction keeps a tombstone.",
        at_least(0),
    )
    log_cleaner_min_cleanable_ratio: float = cluster_wide(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        0.5,
        "Share of a log that must be dirty before it is compacted.",
        between(0, 1),
    )
    log_cleaner_min_compaction_lag_ms: int = cluster_wide(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        0,
        "The shortest time that a record stays uncompacted.",
        at_least(0),
    )
    log_cleaner_max_compaction_lag_ms: int = cluster_wide(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        LONG_MAX,
        "The longest time that a record stays uncompacted.",
        at_least(1),
    )
    log_flush_interval_messages: int = cluster_wide(
        "log.flush.interval.messages",
        LONG,
        LONG_MAX,
        "Sync to disk after this many records.",
        at_least(1),
        importance=HIGH,
    )
    log_flush_interval_ms: int | None = cluster_wide(
        "log.flush.interval.ms",
        LONG,
        None,
        "Sync to disk when the last sync is this long ago; else log.flush.scheduler.interval.ms counts.",
        importance=HIGH,
    )
    log_flush_scheduler_interval_ms: int = read_only(
        "log.flush.scheduler.interval.ms",
        LONG,
        LONG_MAX,
        "How often logs are looked over for ones that should be synced, at least once a second.",
        importance=HIGH,
    )
    log_index_interval_bytes: int = cluster_wide(
        "log.index.interval.bytes", INT, 4096, "Bytes of log between two index entries.", at_least(0)
    )
    log_index_size_max_bytes: int = cluster_wide(
        "log.index.size.max.bytes",
        INT,
        10_485_760,
        "Size at which an index is full and its segment closed.",
        at_least(4),
    )
    log_preallocate: bool = cluster_wide(
        "log.preallocate", BOOLEAN, False, "Whether a segment's bytes are reserved when it is created."
    )
    log_message_timestamp_type: str = cluster_wide(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        "Whether a record keeps the producer's time or gets the broker's.",
        one_of("CreateTime", "LogAppendTime"),
    )
    log_message_timestamp_before_max_ms: int = cluster_wide(
        "log.message.timestamp.before.max.ms",
        LONG,
        LONG_MAX,
        "How far a record's timestamp may lie behind the broker's clock.",
        at_least(0),
    )
    log_message_timestamp_after_max_ms: int = cluster_wide(
        "log.message.timestamp.after.max.ms",
        LONG,
        3_600_000,
        "How far a record's timestamp may lie ahead of the broker's clock.",
        at_least(0),
    )
    message_max_bytes: int = cluster_wide(
        "message.max.bytes",
        INT,
        1_048_588,
        "The largest batch that a producer may send.",
        at_least(0),
        importance=HIGH,
    )
    compression_type: str = cluster_wide(
        "compression.type",
        STRING,
        "producer",
        "The codec of stored batches; producer keeps them as they came.",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        importance=HIGH,
    )
    compression_gzip_level: int = cluster_wide(
        "compression.gzip.level", INT, -1, "Level where the broker compresses by gzip.", GZIP_LEVEL
    )
    compression_lz4_level: int = cluster_wide(
        "compression.lz4.level", INT, 9, "Level where the broker compresses by lz4.", between(1, 17)
    )
    compression_zstd_level: int = cluster_wide(
        "compression.zstd.level", INT, 3, "Level where the broker compresses by zstd.", between(-131_072, 22)
    )
