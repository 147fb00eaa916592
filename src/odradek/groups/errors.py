"""The errors of group requests, each with its error code."""

from __future__ import annotations

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError


class UnknownMemberId(KafkaError):
    """The group has no such member: it was removed, or never joined."""

    error_code = ErrorCode.UNKNOWN_MEMBER_ID


class FencedInstanceId(KafkaError):
    """Another member has this instance id."""

    error_code = ErrorCode.FENCED_INSTANCE_ID


class IllegalGeneration(KafkaError):
    """The request is of a generation other than the current one."""

    error_code = ErrorCode.ILLEGAL_GENERATION

    def __init__(self, generation_id: int, current: int) -> None:
        self.generation_id = generation_id
        self.current = current
        super().__init__(f"generation {generation_id} is not the current one, {current}")


class StaleMemberEpoch(KafkaError):
    """The request is of an epoch other than the member's; the member should send a heartbeat first."""

    error_code = ErrorCode.STALE_MEMBER_EPOCH

    def __init__(self, member_epoch: int, current: int) -> None:
        self.member_epoch = member_epoch
        self.current = current
        super().__init__(f"member epoch {member_epoch} is not the current one, {current}")


class RebalanceInProgress(KafkaError):
    """The group is rebalancing."""

    error_code = ErrorCode.REBALANCE_IN_PROGRESS


class InconsistentGroupProtocol(KafkaError):
    """The member supports no protocol that all other members support."""

    error_code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class GroupIdNotFound(KafkaError):
    """There is no such group."""

    error_code = ErrorCode.GROUP_ID_NOT_FOUND


class NonEmptyGroup(KafkaError):
    """The group has members."""

    error_code = ErrorCode.NON_EMPTY_GROUP
