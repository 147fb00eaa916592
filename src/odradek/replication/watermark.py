# cython: annotation_typing=False
"""The high watermark: the end of what every replica in sync has. Pure.

Compiled by Cython (watermark.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from odradek.replication.remote_replica import RemoteReplica


def high_watermark(own_end_offset: int, followers: list[RemoteReplica], current: int) -> int:
    """Where the high watermark moves to: the smallest log end offset of the leader and these followers.

    It never moves back.
    """
    least = own_end_offset
    for follower in followers:
        least = min(least, follower.end_offset)
    return max(current, least)
