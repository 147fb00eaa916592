# cython: annotation_typing=False
"""The high watermark: the end of what every replica in sync has. Pure.

Compiled by Cython (watermark.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from collections.abc import Sequence


def high_watermark(
    end_offsets: dict[int, int], in_sync: Sequence[int], current: int, min_in_sync: int
) -> int:
    """Where the high watermark moves to, from the log end offset of each replica.

    It never moves back, and not at all while fewer replicas are in sync than the topic demands.
    """
    count = len(in_sync)
    if count == 0 or count < min_in_sync:
        return current
    least = end_offsets.get(in_sync[0], -1)
    for replica in in_sync:
        end = end_offsets.get(replica, -1)
        if end < least:  # noqa: PLR1730
            least = end
    return max(current, least)
