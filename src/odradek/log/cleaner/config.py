"""The cleaner's settings: Kafka 4.3.1's names, types and defaults."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from odradek.common.config import Kind, at_least, setting
from odradek.common.errors import ConfigError

_LEAST_DEDUPE_BYTES = 1024 * 1024
_LEAST_IO_BYTES = 4096


@dataclass(frozen=True, slots=True)
class CleanerConfig:
    """One per broker."""

    log_cleaner_enable: bool = setting(
        "log.cleaner.enable",
        Kind.BOOLEAN,
        True,
        "Whether compaction runs; without it compacted topics grow forever.",
        is_dynamic=False,
    )
    log_cleaner_threads: int = setting(
        "log.cleaner.threads", Kind.INT, 1, "Threads that compact, each its own log.", at_least(0)
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        "log.cleaner.dedupe.buffer.size",
        Kind.LONG,
        134_217_728,
        "Memory of all threads together for the last offsets of keys: 24 bytes a key.",
    )
    log_cleaner_io_buffer_size: int = setting(
        "log.cleaner.io.buffer.size",
        Kind.INT,
        524_288,
        "Memory of all threads together for reading and writing.",
        at_least(0),
    )
    log_cleaner_io_buffer_load_factor: float = setting(
        "log.cleaner.io.buffer.load.factor",
        Kind.DOUBLE,
        0.9,
        "How full the memory for keys may get: fuller cleans more in one pass, but collides more.",
    )
    log_cleaner_io_max_bytes_per_second: float = setting(
        "log.cleaner.io.max.bytes.per.second",
        Kind.DOUBLE,
        sys.float_info.max,
        "What all threads together may read and write on average.",
    )
    log_cleaner_backoff_ms: int = setting(
        "log.cleaner.backoff.ms", Kind.LONG, 15_000, "Pause when there is nothing to clean.", at_least(0)
    )

    def __post_init__(self) -> None:
        if not 0 < self.log_cleaner_io_buffer_load_factor <= 1:
            raise ConfigError(
                f"log.cleaner.io.buffer.load.factor={self.log_cleaner_io_buffer_load_factor}: "
                "must be above 0 and at most 1"
            )
        if self.runs and self.dedupe_bytes_per_thread < _LEAST_DEDUPE_BYTES:
            raise ConfigError(
                f"log.cleaner.dedupe.buffer.size={self.log_cleaner_dedupe_buffer_size}: "
                f"must be at least {_LEAST_DEDUPE_BYTES} for each of {self.log_cleaner_threads} threads"
            )

    @property
    def runs(self) -> bool:
        """Whether there is anything to start."""
        return self.log_cleaner_enable and self.log_cleaner_threads > 0

    @property
    def dedupe_bytes_per_thread(self) -> int:
        """Each thread's part of the memory for keys."""
        return self.log_cleaner_dedupe_buffer_size // max(self.log_cleaner_threads, 1)

    @property
    def io_bytes_per_thread(self) -> int:
        """Each thread's part of the memory for reading; another as large is for writing."""
        return max(self.log_cleaner_io_buffer_size // max(self.log_cleaner_threads, 1) // 2, _LEAST_IO_BYTES)

    @property
    def bytes_per_second_per_thread(self) -> float:
        """Each thread's part of what may be read and written."""
        return self.log_cleaner_io_max_bytes_per_second / max(self.log_cleaner_threads, 1)
