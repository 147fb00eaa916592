"""The settings of a topic that concern its log: Kafka 4.3.1's names, types and defaults.

Not offered, hence refused: `remote.*` and `local.*` (there is no tiered storage) and the keys that Kafka 4
dropped (`message.downconversion.enable`, `message.format.version`, `message.timestamp.difference.max.ms`).
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from odradek.common.config import (
    LONG_MAX,
    Kind,
    Valid,
    at_least,
    between,
    each_of,
    from_properties,
    one_of,
    setting,
)
from odradek.common.errors import ConfigError

__all__ = ["LogConfig", "from_properties"]

GZIP_LEVEL = Valid(
    lambda level: level == -1 or 1 <= level <= 9,
    "[1,...,9] or -1",
    lambda _: "Value must be between 1 and 9 or equal to -1",
)


_THROTTLED_FORMAT = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


def _throttled_replicas(key: str) -> Valid:
    return Valid(
        lambda value: value == ("*",) or all(re.fullmatch("[0-9]+:[0-9]+", pair) for pair in value),
        _THROTTLED_FORMAT,
        lambda _: (
            f"{key} must be the literal '*' or a list of replicas in the following format: "
            f"{_THROTTLED_FORMAT}"
        ),
    )


@dataclass(frozen=True, slots=True)
class LogConfig:
    """One object per distinct set of values, shared by partitions, and therefore immutable."""

    cleanup_policy: tuple[str, ...] = setting(
        "cleanup.policy",
        Kind.LIST,
        ("delete",),
        "What happens to old segments: delete drops them, compact keeps the last value of each key.",
        each_of("compact", "delete"),
    )
    compression_type: str = setting(
        "compression.type",
        Kind.STRING,
        "producer",
        "The codec of stored batches; producer keeps them as they came.",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level", Kind.INT, -1, "Level where the broker compresses by gzip.", GZIP_LEVEL
    )
    compression_lz4_level: int = setting(
        "compression.lz4.level", Kind.INT, 9, "Level where the broker compresses by lz4.", between(1, 17)
    )
    compression_zstd_level: int = setting(
        "compression.zstd.level",
        Kind.INT,
        3,
        "Level where the broker compresses by zstd.",
        between(-131072, 22),
    )
    delete_retention_ms: int = setting(
        "delete.retention.ms",
        Kind.LONG,
        86_400_000,
        "How long compaction keeps a tombstone after the records before it are clean.",
        at_least(0),
    )
    file_delete_delay_ms: int = setting(
        "file.delete.delay.ms",
        Kind.LONG,
        60_000,
        "Time between renaming a file to .deleted and removing it, so that reads under way can end.",
        at_least(0),
    )
    flush_messages: int = setting(
        "flush.messages", Kind.LONG, LONG_MAX, "Sync to disk after this many records.", at_least(1)
    )
    flush_ms: int = setting(
        "flush.ms", Kind.LONG, LONG_MAX, "Sync to disk when the last sync is this long ago.", at_least(0)
    )
    follower_replication_throttled_replicas: tuple[str, ...] = setting(
        "follower.replication.throttled.replicas",
        Kind.LIST,
        (),
        "Followers that are limited by follower.replication.throttled.rate while they are behind; * for all.",
        _throttled_replicas("follower.replication.throttled.replicas"),
    )
    index_interval_bytes: int = setting(
        "index.interval.bytes", Kind.INT, 4096, "Bytes of log between two index entries.", at_least(0)
    )
    internal_segment_bytes: int | None = setting(
        "internal.segment.bytes",
        Kind.INT,
        None,
        "Overrides segment.bytes without its lower bound; for tests.",
        at_least(1),
        is_internal=True,
    )
    leader_replication_throttled_replicas: tuple[str, ...] = setting(
        "leader.replication.throttled.replicas",
        Kind.LIST,
        (),
        "Leaders that leader.replication.throttled.rate limits towards replicas out of sync; * for all.",
        _throttled_replicas("leader.replication.throttled.replicas"),
    )
    max_compaction_lag_ms: int = setting(
        "max.compaction.lag.ms",
        Kind.LONG,
        LONG_MAX,
        "The longest time that a record stays uncompacted.",
        at_least(1),
    )
    max_message_bytes: int = setting(
        "max.message.bytes", Kind.INT, 1_048_588, "The largest batch that a producer may send.", at_least(0)
    )
    message_timestamp_after_max_ms: int = setting(
        "message.timestamp.after.max.ms",
        Kind.LONG,
        3_600_000,
        "How far a record's timestamp may lie ahead of the broker's clock.",
        at_least(0),
    )
    message_timestamp_before_max_ms: int = setting(
        "message.timestamp.before.max.ms",
        Kind.LONG,
        LONG_MAX,
        "How far a record's timestamp may lie behind the broker's clock.",
        at_least(0),
    )
    message_timestamp_type: str = setting(
        "message.timestamp.type",
        Kind.STRING,
        "CreateTime",
        "Whether a record keeps the producer's time or gets the broker's.",
        one_of("CreateTime", "LogAppendTime"),
    )
    min_cleanable_dirty_ratio: float = setting(
        "min.cleanable.dirty.ratio",
        Kind.DOUBLE,
        0.5,
        "Share of a log that must be dirty before it is compacted.",
        between(0, 1),
    )
    min_compaction_lag_ms: int = setting(
        "min.compaction.lag.ms",
        Kind.LONG,
        0,
        "The shortest time that a record stays uncompacted.",
        at_least(0),
    )
    min_insync_replicas: int = setting(
        "min.insync.replicas", Kind.INT, 1, "Replicas in sync that acks=all needs.", at_least(1)
    )
    preallocate: bool = setting(
        "preallocate", Kind.BOOLEAN, False, "Reserve a segment's bytes when it is created."
    )
    retention_bytes: int = setting(
        "retention.bytes", Kind.LONG, -1, "Size at which the oldest segments go; -1 keeps any size."
    )
    retention_ms: int = setting(
        "retention.ms", Kind.LONG, 604_800_000, "Age at which segments go; -1 keeps any age.", at_least(-1)
    )
    segment_bytes: int = setting(
        "segment.bytes", Kind.INT, 1_073_741_824, "Size at which a segment is closed.", at_least(1_048_576)
    )
    segment_index_bytes: int = setting(
        "segment.index.bytes", Kind.INT, 10_485_760, "Size at which an index is full.", at_least(4)
    )
    segment_jitter_ms: int = setting(
        "segment.jitter.ms",
        Kind.LONG,
        0,
        "At most this much is taken off segment.ms at random, so that segments do not all roll at once.",
        at_least(0),
    )
    segment_ms: int = setting(
        "segment.ms", Kind.LONG, 604_800_000, "Age at which a segment is closed.", at_least(1)
    )
    unclean_leader_election_enable: bool = setting(
        "unclean.leader.election.enable",
        Kind.BOOLEAN,
        False,
        "Whether a replica that is not in sync may lead when no other can.",
    )

    def __post_init__(self) -> None:
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise ConfigError(
                f"conflict topic config setting min.compaction.lag.ms ({self.min_compaction_lag_ms}) > "
                f"max.compaction.lag.ms ({self.max_compaction_lag_ms})"
            )

    @property
    def max_segment_bytes(self) -> int:
        """Where a segment ends, the test override included."""
        return self.segment_bytes if self.internal_segment_bytes is None else self.internal_segment_bytes

    @property
    def max_segment_ms(self) -> int:
        """Age at which a segment is closed; sooner for compaction, which leaves the active one alone."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms

    @property
    def is_compacted(self) -> bool:
        """Whether every record needs a key."""
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether retention by time and size applies."""
        return "delete" in self.cleanup_policy

    def replace(self, **changes: object) -> LogConfig:
        """The same settings but for a few."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]
