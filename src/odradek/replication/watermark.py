"""The high watermark: the end of what every replica in sync has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def high_watermark(
    end_offsets: Mapping[int, int], in_sync: Iterable[int], current: int, *, min_in_sync: int
) -> int:
    """Where the high watermark moves to, from the log end offset of each replica.

    It never moves back, and not at all while fewer replicas are in sync than the topic demands.
    """
    ends = [end_offsets.get(replica, -1) for replica in in_sync]
    if not ends or len(ends) < min_in_sync:
        return current
    return max(current, min(ends))
