"""The API of the group coordinator for the handlers; each request runs on the shard of its group."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from uuid import uuid4

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.coordinator.partitioning import partition_for
from odradek.coordinator.result import Response, Result, TransactionMarker
from odradek.coordinator.runtime import CoordinatorRuntime
from odradek.groups.classic.membership import Joining
from odradek.groups.classic_group import NO_GENERATION
from odradek.groups.consumer.consumer_protocol import ConsumerHeartbeat
from odradek.groups.requests import admin, consumer_admin
from odradek.groups.requests import classic_requests as classic
from odradek.groups.requests import consumer_requests as consumer
from odradek.groups.requests import offset_requests as offsets
from odradek.groups.requests.offset_requests import (
    Commit,
    FetchedOffset,
    PartitionErrors,
    TransactionalCommit,
)
from odradek.groups.state import GroupsState
from odradek.protocol.messages import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatResponse,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

logger = logging.getLogger(__name__)


class GroupService:
    """Finds the shard, runs the operation there and waits for its commit. Used on the broker's event loop.

    `partition_count` is that of `__consumer_offsets`; errors of whole requests are raised.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupsState],
        partition_count: Callable[[], int],
        new_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self._runtime = runtime
        self._partition_count = partition_count
        self._new_id = new_id

    def close(self) -> None:
        """Stop coordinating all groups."""
        self._runtime.close()

    def new_uuid(self) -> str:
        """A member id for a member of the consumer protocol that has none."""
        return self._new_id()

    def new_member_id(self, prefix: str) -> str:
        """A member id for a classic member that has none."""
        return f"{prefix}-{self._new_id()}"

    # The classic protocol

    async def join(self, group_id: str, joining: Joining) -> JoinGroupResponse:
        """Join; returns when all members have joined."""
        _check_named(group_id)
        return await self._run(group_id, lambda state, now: classic.join(state, group_id, joining, now))

    async def sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        """Send or get the assignment."""
        _check_named(request.group_id)
        return await self._run(request.group_id, lambda state, now: classic.sync(state, request, now))

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Renew a member's session."""
        _check_named(request.group_id)
        return await self._run(request.group_id, lambda state, now: classic.heartbeat(state, request, now))

    async def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        """Remove members."""
        _check_named(request.group_id)
        return await self._run(request.group_id, lambda state, now: classic.leave(state, request, now))

    # The consumer protocol

    async def consumer_heartbeat(
        self, group_id: str, request: ConsumerHeartbeat
    ) -> ConsumerGroupHeartbeatResponse:
        """Join, stay, get an assignment, or leave."""
        return await self._run(group_id, lambda state, now: consumer.heartbeat(state, group_id, request, now))

    async def describe_consumer_group(self, group_id: str) -> ConsumerGroupDescribeResponse.Groups:
        """One group of the consumer protocol with its members."""
        return await self._runtime.read(
            self.partition_of(group_id), lambda state, _: consumer_admin.describe(state, group_id)
        )

    # Offsets

    async def commit_offsets(self, commit: Commit) -> PartitionErrors:
        """Commit offsets; each partition has its own error code."""
        return await self._run(commit.group_id, lambda state, now: offsets.commit(state, commit, now))

    async def commit_offsets_in_transaction(self, request: TransactionalCommit) -> PartitionErrors:
        """Commit offsets as part of a transaction; each partition has its own error code."""
        group_id = request.commit.group_id
        return await self._run(group_id, lambda state, _: offsets.commit_in_transaction(state, request))

    async def end_transaction(self, partition: int, marker: TransactionMarker) -> None:
        """A transaction with offsets in this partition has ended: they take effect, or are dropped."""
        await self._runtime.end_transaction(partition, marker)

    async def fetch_offsets(
        self,
        group_id: str,
        partitions: Collection[TopicPartition] | None,
        *,
        member_id: str | None = None,
        member_epoch: int = NO_GENERATION,
        require_stable: bool = False,
    ) -> dict[TopicPartition, FetchedOffset]:
        """The committed offsets of these partitions, or all; members give their id and epoch."""

        def fetch(state: GroupsState, _: int) -> dict[TopicPartition, FetchedOffset]:
            offsets.check_member(state, group_id, member_id, member_epoch)
            return offsets.fetch(state, group_id, partitions, require_stable=require_stable)

        return await self._runtime.read(self.partition_of(group_id), fetch)

    async def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> PartitionErrors:
        """Delete offsets; each partition has its own error code."""
        return await self._run(group_id, lambda state, _: offsets.delete(state, group_id, partitions))

    async def on_partitions_deleted(self, partitions: Collection[TopicPartition]) -> None:
        """Delete the offsets of deleted partitions; a new topic of the same name starts without offsets."""
        for partition in self._runtime.partitions():
            try:
                await self._runtime.run(
                    partition, lambda state, _: offsets.delete_partitions(state, partitions)
                )
            except KafkaError as error:
                logger.warning("offsets of deleted partitions remain in partition %d: %s", partition, error)

    # Administration

    async def list_groups(
        self, states: Collection[str], types: Collection[str]
    ) -> list[ListGroupsResponse.Groups]:
        """The groups that this broker coordinates."""
        listed = []
        for partition in self._runtime.partitions():
            try:
                listed += await self._runtime.read(
                    partition, lambda state, _: admin.list_groups(state, states, types)
                )
            except KafkaError as error:
                # Another broker is the coordinator by now, and lists them.
                if error.error_code is not ErrorCode.NOT_COORDINATOR:
                    raise
        return listed

    async def describe(self, group_id: str, *, knows_group_errors: bool) -> DescribeGroupsResponse.Groups:
        """One group with its members."""
        return await self._runtime.read(
            self.partition_of(group_id),
            lambda state, _: admin.describe(state, group_id, knows_group_errors=knows_group_errors),
        )

    async def delete(self, group_id: str) -> None:
        """Delete a group without members."""
        await self._run(group_id, lambda state, _: admin.delete(state, group_id))

    def partition_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` of a group."""
        count = self._partition_count()
        if count == 0:
            raise KafkaError(
                "__consumer_offsets does not exist yet", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE
            )
        return partition_for(group_id, count)

    async def _run(self, group_id: str, decide: Callable[[GroupsState, int], Result[Response]]) -> Response:
        return await self._runtime.run(self.partition_of(group_id), decide)


def _check_named(group_id: str) -> None:
    if not group_id:
        raise KafkaError("the group id is empty", error_code=ErrorCode.INVALID_GROUP_ID)
