"""Errors of partitions; most are retriable after a refresh of the metadata."""

from __future__ import annotations

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition


class NotLeaderOrFollower(KafkaError):
    """This broker does not lead the partition; `leader_id` does, as far as it knows (-1: none)."""

    error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER

    def __init__(self, partition: TopicPartition, leader_id: int, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        super().__init__(f"{partition} is led by broker {leader_id}, not by this one")


class LeaderEpochPending(KafkaError):
    """This broker begins a new leader epoch, which is being written to the disk; retriable."""

    error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class RefusedFollower(KafkaError):
    """A fetch as a follower that no broker should send."""


class StaleBrokerEpoch(RefusedFollower):
    """A follower fetched in an earlier registration than one in which it has fetched before (KIP-903)."""

    error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class NotAReplica(RefusedFollower):
    """The broker is not among the replicas; UNKNOWN_LEADER_EPOCH if the assignment may be about to come."""

    error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class FencedLeaderEpoch(KafkaError):
    """The client's leader epoch is older than ours: it must refresh its metadata."""

    error_code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpoch(KafkaError):
    """The client's leader epoch is newer than this broker's; retriable."""

    error_code = ErrorCode.UNKNOWN_LEADER_EPOCH


class NotEnoughReplicas(KafkaError):
    """Fewer replicas in sync than `min.insync.replicas`: nothing was written."""

    error_code = ErrorCode.NOT_ENOUGH_REPLICAS

    def __init__(self, partition: TopicPartition, in_sync: int, needed: int) -> None:
        self.partition = partition
        self.in_sync = in_sync
        self.needed = needed
        super().__init__(f"{partition} has {in_sync} replicas in sync, {needed} are needed")
