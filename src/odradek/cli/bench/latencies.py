"""A latency histogram of bounded size: buckets are at most 1/64 of their value wide.

bucket            microseconds
0 .. 127          0 .. 127, one each
128 .. 191        128 .. 255, two each
192 .. 255        256 .. 511, four each
...               each next 64 buckets cover the next power of two
"""

from __future__ import annotations

from collections.abc import Iterator

_FINE_BITS = 7
_FINE = 1 << _FINE_BITS
_HALF = _FINE // 2
_LONGEST_BITS = 36  # 19 hours in microseconds
_BUCKETS = _FINE + _HALF * (_LONGEST_BITS - _FINE_BITS)

_STEPS = (1, 2, 5)
"""Edges of the printed histogram: 1, 2, 5, 10, 20, 50, … microseconds."""


class Latencies:
    """Counts of latencies. One thread adds; others may read and may miss the latest one."""

    def __init__(self) -> None:
        self._counts = [0] * _BUCKETS
        self.count = 0
        self.total_ns = 0
        self.max_ns = 0

    def add(self, elapsed_ns: int) -> None:
        """Count one latency."""
        self._counts[_bucket(elapsed_ns // 1000)] += 1
        self.count += 1
        self.total_ns += elapsed_ns
        self.max_ns = max(self.max_ns, elapsed_ns)

    @property
    def average_ms(self) -> float:
        """The mean; 0 if nothing was counted."""
        return self.total_ns / self.count / 1e6 if self.count else 0.0

    @property
    def max_ms(self) -> float:
        """The longest time, exactly."""
        return self.max_ns / 1e6

    def percentile_ms(self, percent: float) -> float:
        """The percentile, at most 1/64 too high; 0 if nothing was counted."""
        wanted = max(1, -(-self.count * percent // 100))
        seen = 0
        for bucket, count in enumerate(self._counts):
            seen += count
            if seen >= wanted:
                return min(_end_us(bucket) / 1e3, self.max_ms)
        return 0.0

    def histogram(self) -> list[tuple[float, float, int]]:
        """(from ms, to ms, count) from the first to the last nonempty bucket."""
        edges = _edges_us()
        rows: list[tuple[float, float, int]] = []
        begin, end, count = 0, next(edges), 0
        for bucket, in_bucket in enumerate(self._counts):
            while _end_us(bucket) > end:
                rows.append((begin / 1e3, end / 1e3, count))
                begin, end, count = end, next(edges), 0
            count += in_bucket
        rows.append((begin / 1e3, end / 1e3, count))
        filled = [place for place, row in enumerate(rows) if row[2]]
        return rows[filled[0] : filled[-1] + 1] if filled else []


def _bucket(elapsed_us: int) -> int:
    if elapsed_us < _FINE:
        return max(0, elapsed_us)
    shift = elapsed_us.bit_length() - _FINE_BITS
    return min(_HALF * shift + (elapsed_us >> shift), _BUCKETS - 1)


def _end_us(bucket: int) -> int:
    """Where the next bucket begins."""
    if bucket < _FINE:
        return bucket + 1
    shift, place = divmod(bucket - _HALF, _HALF)
    return (_HALF + place + 1) << shift


def _edges_us() -> Iterator[int]:
    power = 1
    while True:
        for step in _STEPS:
            yield step * power
        power *= 10
