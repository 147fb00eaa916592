"""Offsets that a group keeps with its coordinator: commit and fetch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from odradek.client.broker_errors import check
from odradek.client.committed_offsets import (
    LAST_COMMIT_WITH_NAMES,
    LAST_FETCH_WITH_NAMES,
    MemberIdentity,
    OffsetAndMetadata,
    commit_request,
    committed_rows,
    fetch_request,
    response_of_group,
)
from odradek.client.coordinators import Coordinators
from odradek.client.errors import BrokerError, ClientError
from odradek.client.network.brokers import Brokers
from odradek.client.network.connection import BrokerConnection
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    OffsetCommitResponse,
    OffsetFetchResponse,
)

PURPOSE = "group"
"""A join may wait at the coordinator for minutes: requests of the group have a connection of their own."""

Result = TypeVar("Result")

COORDINATOR_IS_ELSEWHERE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class GroupOffsets:
    """The offsets of one group. Lives on the loop of its brokers."""

    def __init__(self, group_id: str, brokers: Brokers, coordinators: Coordinators) -> None:
        self.group_id = group_id
        self._brokers = brokers
        self._coordinators = coordinators

    async def connection(self) -> BrokerConnection:
        """A connection to the coordinator, for requests of the group."""
        await self._brokers.ensure_fresh()
        node_id = await self._coordinators.find(self.group_id)
        try:
            return await self._brokers.connection(node_id, PURPOSE)
        except ClientError:
            self._coordinators.forget(self.group_id)
            raise

    def forget_coordinator_after(self, error: BaseException) -> None:
        """Look up the coordinator again if the error means that it has moved."""
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
        call: Callable[[MemberIdentity], Awaitable[Result]],
        identity: Callable[[], MemberIdentity],
        timeout_ms: int | None,
    ) -> Result:
        async def attempt() -> Result:
            who = identity()
            try:
                return await call(who)
            except (BrokerError, ClientError) as error:
                self.forget_coordinator_after(error)
                is_stale = isinstance(error, BrokerError) and error.error_code == ErrorCode.STALE_MEMBER_EPOCH
                if not is_stale:
                    raise
            # The broker has increased our epoch; the next heartbeat returns it.
            await asyncio.sleep(self._brokers.config.retry_backoff_ms / 1000)
            return await call(identity())

        return await self._brokers.retry(what, attempt, timeout_ms=timeout_ms)

    async def _commit_once(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], identity: MemberIdentity
    ) -> None:
        connection = await self.connection()
        version = connection.versions.best(ApiKey.OFFSET_COMMIT, LAST_COMMIT_WITH_NAMES)
        request = commit_request(version, self.group_id, offsets, identity)
        response = await connection.send_request(
            request, OffsetCommitResponse, max_version=LAST_COMMIT_WITH_NAMES
        )
        for topic in response.topics:
            for row in topic.partitions:
                check(row.error_code, f"{topic.name}-{row.partition_index}")

    async def fetch(
        self,
        partitions: Iterable[TopicPartition] | None,
        identity: Callable[[], MemberIdentity] = MemberIdentity,
        *,
        timeout_ms: int | None = None,
        require_stable: bool = True,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is committed of these partitions, or of all; those without are left out.

        With `require_stable` it waits while a transaction is about to change an offset.
        """
        wanted = None if partitions is None else sorted(set(partitions))
        if wanted == []:
            return {}

        return await self._retry(
            "fetching committed offsets",
            lambda who: self._fetch_once(wanted, who, require_stable=require_stable),
            identity,
            timeout_ms,
        )

    async def _fetch_once(
        self, partitions: list[TopicPartition] | None, identity: MemberIdentity, *, require_stable: bool
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        connection = await self.connection()
        version = connection.versions.best(ApiKey.OFFSET_FETCH, LAST_FETCH_WITH_NAMES)
        request = fetch_request(version, self.group_id, partitions, identity, require_stable=require_stable)
        response = await connection.send_request(
            request, OffsetFetchResponse, max_version=LAST_FETCH_WITH_NAMES
        )
        group = response_of_group(version, response)
        check(group.error_code)
        found = {}
        for partition, committed, error_code in committed_rows(group):
            check(error_code, str(partition))
            if committed.offset >= 0:
                found[partition] = committed
        return found
