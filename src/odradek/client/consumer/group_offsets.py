"""Offsets that a group keeps with its coordinator: commit and fetch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from odradek.client.broker_errors import broker_error, check
from odradek.client.brokers import Brokers
from odradek.client.connection import BrokerConnection
from odradek.client.coordinators import Coordinators
from odradek.client.errors import BrokerError, ClientError
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

PURPOSE = "group"
"""A join may wait at the coordinator for minutes: what concerns the group goes on a connection of its own."""

LAST_COMMIT_WITH_NAMES = 9
LAST_FETCH_WITH_NAMES = 9
FIRST_FETCH_WITH_GROUPS = 8

Result = TypeVar("Result")

COORDINATOR_IS_ELSEWHERE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class OffsetAndMetadata(NamedTuple):
    """A committed offset: that of the next record to read, and what the committer noted with it."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class MemberIdentity(NamedTuple):
    """Who commits: a member with its generation (or epoch), or nobody in particular."""

    member_id: str = ""
    generation_id: int = -1
    group_instance_id: str | None = None


class GroupOffsets:
    """The offsets of one group. Lives on the loop of its brokers."""

    def __init__(self, group_id: str, brokers: Brokers, coordinators: Coordinators) -> None:
        self.group_id = group_id
        self._brokers = brokers
        self._coordinators = coordinators

    async def connection(self) -> BrokerConnection:
        """A connection to the coordinator, for what concerns the group."""
        await self._brokers.ensure_fresh()
        node_id = await self._coordinators.find(self.group_id)
        try:
            return await self._brokers.connection(node_id, PURPOSE)
        except ClientError:
            self._coordinators.forget(self.group_id)
            raise

    def doubt(self, error: BaseException) -> None:
        """Look for the coordinator again if the error means that it is not where it was."""
        if isinstance(error, ClientError) or (
            isinstance(error, BrokerError) and error.error_code in COORDINATOR_IS_ELSEWHERE
        ):
            self._coordinators.forget(self.group_id)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        identity: Callable[[], MemberIdentity],
        timeout_ms: int | None = None,
    ) -> None:
        """Commit, and try again after errors that may pass."""
        if offsets:
            await self._retry(
                "committing offsets", lambda who: self._commit_once(offsets, who), identity, timeout_ms
            )

    async def _retry(
        self,
        what: str,
        ask: Callable[[MemberIdentity], Awaitable[Result]],
        identity: Callable[[], MemberIdentity],
        timeout_ms: int | None,
    ) -> Result:
        async def attempt() -> Result:
            who = identity()
            try:
                return await ask(who)
            except (BrokerError, ClientError) as error:
                self.doubt(error)
                is_stale = isinstance(error, BrokerError) and error.error_code == ErrorCode.STALE_MEMBER_EPOCH
                if not is_stale:
                    raise
            # The broker has raised our epoch; the next heartbeat tells us.
            await asyncio.sleep(self._brokers.config.retry_backoff_ms / 1000)
            return await ask(identity())

        return await self._brokers.retry(what, attempt, timeout_ms=timeout_ms)

    async def _commit_once(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], identity: MemberIdentity
    ) -> None:
        connection = await self.connection()
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=identity.generation_id,
            member_id=identity.member_id,
        )
        if identity.group_instance_id is not None:
            request.group_instance_id = identity.group_instance_id
        topics: dict[str, OffsetCommitRequest.Topics] = {}
        for partition, committed in offsets.items():
            row = OffsetCommitRequest.Topics.Partitions(
                partition_index=partition.partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
            topic = topics.setdefault(partition.topic, OffsetCommitRequest.Topics(name=partition.topic))
            topic.partitions.append(row)
        request.topics = list(topics.values())
        answer = await connection.ask(request, OffsetCommitResponse, max_version=LAST_COMMIT_WITH_NAMES)
        for told in answer.topics:
            for one in told.partitions:
                check(one.error_code, f"{told.name}-{one.partition_index}")

    async def fetch(
        self,
        partitions: Iterable[TopicPartition],
        identity: Callable[[], MemberIdentity] = MemberIdentity,
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is committed of these partitions; those without are not in the answer."""
        wanted = sorted(set(partitions))
        if not wanted:
            return {}

        return await self._retry(
            "fetching committed offsets", lambda who: self._fetch_once(wanted, who), identity, timeout_ms
        )

    async def _fetch_once(
        self, partitions: list[TopicPartition], identity: MemberIdentity
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        connection = await self.connection()
        topics: dict[str, list[int]] = {}
        for partition in partitions:
            topics.setdefault(partition.topic, []).append(partition.partition)
        version = connection.versions.best(ApiKey.OFFSET_FETCH, LAST_FETCH_WITH_NAMES)
        request = OffsetFetchRequest()
        if version >= 7:
            request.require_stable = True
        if version >= FIRST_FETCH_WITH_GROUPS:
            rows = [
                OffsetFetchRequest.Groups.Topics(name=one, partition_indexes=topics[one]) for one in topics
            ]
            group = OffsetFetchRequest.Groups(group_id=self.group_id, topics=rows)
            if version >= 9 and identity.member_id and identity.generation_id >= 0:
                group.member_id, group.member_epoch = identity.member_id, identity.generation_id
            request.groups = [group]
        else:
            request.group_id = self.group_id
            request.topics = [
                OffsetFetchRequest.Topics(name=one, partition_indexes=topics[one]) for one in topics
            ]
        answer = await connection.ask(request, OffsetFetchResponse, max_version=LAST_FETCH_WITH_NAMES)
        told = answer.groups[0] if version >= FIRST_FETCH_WITH_GROUPS else answer
        check(told.error_code)
        return _committed(told)


def _committed(
    told: OffsetFetchResponse | OffsetFetchResponse.Groups,
) -> dict[TopicPartition, OffsetAndMetadata]:
    found = {}
    for topic in told.topics:
        for row in topic.partitions:
            partition = TopicPartition(topic.name, row.partition_index)
            if row.error_code != ErrorCode.NONE:
                raise broker_error(row.error_code, str(partition))
            if row.committed_offset >= 0:
                found[partition] = OffsetAndMetadata(
                    row.committed_offset, row.metadata or "", row.committed_leader_epoch
                )
    return found
