# cython: annotation_typing=False
"""What a leader knows about one of its followers, from the follower's fetches. Pure.

Compiled by Cython (remote_replica.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

UNKNOWN_OFFSET = -1
UNKNOWN_EPOCH = -1


class RemoteReplica:
    """One follower in the present leader epoch. Owned by its Partition.

    `end_offset`: the follower has every record before it; -1 until its first fetch in this leader epoch.
    `last_caught_up_ms`: when the follower last had everything that the leader had at that time.
    `last_fetch_ms`, `leader_end_offset`: when it fetched last, and where the leader's log ended then.
    `broker_epoch`: the registration of the broker that fetched (KIP-903); -1 if the fetch did not name one.
    """

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "end_offset",
        "last_caught_up_ms",
        "last_fetch_ms",
        "leader_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int, caught_up_ms: int = 0) -> None:
        self.broker_id = broker_id
        self.end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_EPOCH
        self.last_caught_up_ms = caught_up_ms
        self.last_fetch_ms = 0
        self.leader_end_offset = UNKNOWN_OFFSET

    def on_fetch(
        self,
        fetch_offset: int,
        log_start_offset: int,
        leader_end_offset: int,
        now_ms: int,
        broker_epoch: int,
    ) -> None:
        """The follower asks for `fetch_offset`; the leader's log ends at `leader_end_offset` now."""
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self.leader_end_offset:
            # It has all that the leader had at its last fetch: under constant load it is never further.
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.leader_end_offset = max(self.leader_end_offset, leader_end_offset)
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """Whether it has everything, or had it not longer ago than `max_lag_ms`."""
        return self.end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= max_lag_ms

    def may_join_isr(self, high_watermark: int, epoch_start_offset: int) -> bool:
        """Whether it has everything that is committed, and has reached this leader's epoch."""
        return self.end_offset >= high_watermark and self.end_offset >= epoch_start_offset
