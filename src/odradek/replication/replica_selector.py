"""Which replica a consumer should read from: one in its rack (KIP-392, RackAwareReplicaSelector). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class ReadableReplica(NamedTuple):
    """A live replica in sync that has the offset; the leader is one of them."""

    broker_id: int
    rack: str | None
    end_offset: int
    last_caught_up_ms: int


def replica_in_rack(replicas: Iterable[ReadableReplica], leader_id: int, client_rack: str) -> int | None:
    """The replica to read from; None for the leader.

    Of several replicas in the client's rack, the leader comes first, then the one that is the furthest.
    """
    near = [one for one in replicas if one.rack == client_rack]
    if not near or any(one.broker_id == leader_id for one in near):
        return None
    return max(near, key=lambda one: (one.end_offset, one.last_caught_up_ms, one.broker_id)).broker_id
