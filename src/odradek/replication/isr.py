"""Which replicas are in sync: whom to remove, whom to add, and what counts while a change is pending. Pure.

| set | used for |
| --- | --- |
| committed ISR | what the controller has confirmed; sent to clients |
| largest ISR | the high watermark: committed and proposed replicas together |
| smallest ISR | `min.insync.replicas`: replicas both committed and proposed |

Until the controller has answered, either set may be in force: so the high watermark waits for every replica
that may be in sync, and acks=all counts only those that surely are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from odradek.common.error_codes import ErrorCode
from odradek.replication.remote_replica import UNKNOWN_EPOCH, RemoteReplica


class IsrChange(NamedTuple):
    """A change that a leader asks the controller for (AlterPartition); valid in its two epochs only.

    `broker_epochs`: of each replica in `isr`, as this leader saw it fetch; -1 if it does not know it.
    """

    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


def largest_isr(committed: tuple[int, ...], pending: IsrChange | None) -> tuple[int, ...]:
    """Every replica that may be in sync."""
    if pending is None:
        return committed
    return committed + tuple(one for one in pending.isr if one not in committed)


def smallest_isr(committed: tuple[int, ...], pending: IsrChange | None) -> tuple[int, ...]:
    """The replicas that are in sync whatever the controller decides."""
    if pending is None:
        return committed
    return tuple(one for one in committed if one in pending.isr)


def out_of_sync(
    followers: Iterable[RemoteReplica],
    isr: tuple[int, ...],
    leader_end_offset: int,
    high_watermark: int,
    now_ms: int,
    max_lag_ms: int,
) -> set[int]:
    """The followers that must leave the ISR: too far behind for too long, or without committed records.

    A replica in sync has everything below the high watermark, by definition. One that has fetched from below
    it has lost records, for example with its disk, and is removed at once.
    """
    return {
        one.broker_id
        for one in followers
        if one.broker_id in isr
        and (
            not one.is_caught_up(leader_end_offset, now_ms, max_lag_ms)
            or 0 <= one.end_offset < high_watermark
        )
    }


def is_current_registration(fetched_epoch: int, registered_epoch: int | None) -> bool:
    """Whether a follower is alive, and fetched in the registration that it has now (KIP-841, KIP-903).

    `registered_epoch` is None for a broker that is not registered, -1 if its epoch is not known.
    """
    if registered_epoch is None:
        return False
    return UNKNOWN_EPOCH in (fetched_epoch, registered_epoch) or fetched_epoch == registered_epoch


def proposed_change(
    isr: Iterable[int],
    own_id: int,
    followers: dict[int, RemoteReplica],
    leader_epoch: int,
    partition_epoch: int,
    registered_epoch: Callable[[int], int | None],
) -> IsrChange:
    """The request for an ISR, with the broker epochs in which this leader knows its members."""
    members = tuple(isr)
    epochs = []
    for broker_id in members:
        if broker_id == own_id:
            known = registered_epoch(own_id)
            epochs.append(UNKNOWN_EPOCH if known is None else known)
        else:
            follower = followers.get(broker_id)
            epochs.append(UNKNOWN_EPOCH if follower is None else follower.broker_epoch)
    return IsrChange(members, tuple(epochs), leader_epoch, partition_epoch)


# The controller has not applied the change, and the epochs of the request are the current ones.
_NOT_APPLIED = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
# The controller has a newer state, which a LeaderAndIsr request brings; the old ISR must not come back.
_SUPERSEDED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


class AfterError(NamedTuple):
    """What follows a refused change: it is given up, or the controller decides; else it is sent again."""

    gives_up: bool = False
    waits: bool = False


def after_error(error_code: ErrorCode) -> AfterError:
    """What to do after an error of one partition in an AlterPartition response."""
    return AfterError(gives_up=error_code in _NOT_APPLIED, waits=error_code in _SUPERSEDED)
