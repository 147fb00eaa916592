"""A member's next step towards the target: revoke, then advance to the target epoch, then assign.

A partition is never assigned while another member owns it or has not confirmed its revocation, so that no two
members read it at the same time.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from types import MappingProxyType

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.groups.consumer.consumer_group import ConsumerMember, MemberState, PartitionId


def reconcile(
    member: ConsumerMember,
    target: Collection[PartitionId],
    target_epoch: int,
    held_by_others: Collection[PartitionId],
    owned: Collection[PartitionId] | None,
) -> ConsumerMember:
    """The member after one step; unchanged if no step is possible.

    `owned` are the partitions that it reported, None if it reported none: then it still owns all it had.
    """
    if member.is_reconciled_to(target_epoch):
        return member
    epoch = member.member_epoch
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _still_has(owned, member.revoking):
            return member
        epoch += 1
    elif member.state is MemberState.UNKNOWN:
        if owned is None or owned:
            raise KafkaError("the member is in an unknown state", error_code=ErrorCode.FENCED_MEMBER_EPOCH)
        epoch = target_epoch
    return _step(member, epoch, target, target_epoch, held_by_others, owned)


def _step(
    member: ConsumerMember,
    epoch: int,
    target: Collection[PartitionId],
    target_epoch: int,
    held_by_others: Collection[PartitionId],
    owned: Collection[PartitionId] | None,
) -> ConsumerMember:
    wanted = frozenset(target)
    kept = {partition: since for partition, since in member.assigned.items() if partition in wanted}
    to_revoke = {partition: since for partition, since in member.assigned.items() if partition not in wanted}
    if to_revoke and _still_has(owned, to_revoke):
        return replace(
            member.in_epoch(epoch),
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=MappingProxyType(kept),
            revoking=MappingProxyType(to_revoke),
        )
    missing = wanted - kept.keys()
    free = missing.difference(held_by_others)
    kept.update(dict.fromkeys(free, target_epoch))
    return replace(
        member.in_epoch(target_epoch),
        state=MemberState.STABLE if len(free) == len(missing) else MemberState.UNRELEASED_PARTITIONS,
        assigned=MappingProxyType(kept),
        revoking=MappingProxyType({}),
    )


def _still_has(owned: Collection[PartitionId] | None, partitions: Collection[PartitionId]) -> bool:
    return owned is None or any(partition in partitions for partition in owned)
