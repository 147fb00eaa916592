"""The statistics of one run of the cleaner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False, repr=False)
class CleanerStatistics:
    """Counts of one run; filled by the thread that runs it, read when it is over."""

    start_offset: int = 0  # the dirty part of the log: [start_offset, end_offset)
    end_offset: int = 0
    map_bytes_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    records_without_key: int = 0
    segments_read: int = 0
    segments_written: int = 0
    map_entries: int = 0
    map_utilization: float = 0.0
    map_seconds: float = 0.0
    rewrite_seconds: float = 0.0
    swap_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """All three phases."""
        return self.map_seconds + self.rewrite_seconds + self.swap_seconds

    @property
    def megabytes_per_second(self) -> float:
        """Bytes of log cleaned per second, as Kafka's cleaner reports them."""
        return self.bytes_read / 2**20 / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        mib = 2**20
        return (
            f"{self.bytes_read / mib:,.1f} MB of log in {self.seconds:,.2f} s "
            f"({self.megabytes_per_second:,.1f} MB/s), offsets {self.start_offset} to {self.end_offset}; "
            f"indexed {self.map_bytes_read / mib:,.1f} MB in {self.map_seconds:,.2f} s, "
            f"{self.map_entries:,} keys, map {self.map_utilization:.1%} full; "
            f"rewrote in {self.rewrite_seconds:,.2f} s, swapped in {self.swap_seconds:,.3f} s; "
            f"{self.bytes_read / mib:,.1f} MB to {self.bytes_written / mib:,.1f} MB, "
            f"{self.records_read:,} records to {self.records_written:,}, "
            f"{self.segments_read} segments to {self.segments_written}"
        )
