"""Offsets that groups have committed: list, change, delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odradek.client.admin.base import ResultOrError, by_topic, outcome_of
from odradek.client.admin.by_coordinator import CoordinatorAdmin, refuse_wrong_coordinator
from odradek.client.broker_errors import UnstableOffsetCommit, check
from odradek.client.committed_offsets import (
    LAST_COMMIT_WITH_NAMES,
    LAST_FETCH_WITH_NAMES,
    OffsetAndMetadata,
    commit_request,
    committed_rows,
    fetch_request,
    response_of_group,
)
from odradek.client.metadata import Node
from odradek.client.network.connection import BrokerConnection
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchResponse,
)

Offsets = dict[TopicPartition, ResultOrError[OffsetAndMetadata]]


class GroupOffsetAdmin(CoordinatorAdmin):
    """The calls about committed offsets."""

    async def list_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> Offsets:
        """The committed offsets of a group, of these partitions or of all; those without are left out.

        With `require_stable` the call waits for transactions that are about to change an offset.
        """
        wanted = None if partitions is None else {TopicPartition(*partition) for partition in partitions}

        async def call(_: Node, connection: BrokerConnection) -> Offsets:
            version = connection.versions.best(ApiKey.OFFSET_FETCH, LAST_FETCH_WITH_NAMES)
            request = fetch_request(version, group_id, wanted, require_stable=require_stable)
            group = response_of_group(
                version,
                await connection.send_request(
                    request, OffsetFetchResponse, max_version=LAST_FETCH_WITH_NAMES
                ),
            )
            check(group.error_code)
            found = {
                partition: outcome_of(committed, error_code, str(partition))
                for partition, committed, error_code in committed_rows(group)
                if error_code or committed.offset >= 0
            }
            _refuse_unstable(found)
            return found

        return await self._at_coordinator("listing committed offsets", group_id, call, timeout_ms)

    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, ResultOrError[None]]:
        """Commit for a group without members, else UnknownMemberId; a group that is missing is created."""
        given = {
            TopicPartition(*partition): one if isinstance(one, OffsetAndMetadata) else OffsetAndMetadata(one)
            for partition, one in offsets.items()
        }

        async def call(_: Node, connection: BrokerConnection) -> dict[TopicPartition, ResultOrError[None]]:
            version = connection.versions.best(ApiKey.OFFSET_COMMIT, LAST_COMMIT_WITH_NAMES)
            request = commit_request(version, group_id, given)
            response = await connection.send_request(
                request, OffsetCommitResponse, max_version=LAST_COMMIT_WITH_NAMES
            )
            outcomes = {
                TopicPartition(topic.name, row.partition_index): outcome_of(None, row.error_code)
                for topic in response.topics
                for row in topic.partitions
            }
            refuse_wrong_coordinator(outcomes)
            return outcomes

        if not given:
            return {}
        return await self._at_coordinator("committing offsets", group_id, call, timeout_ms)

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, ResultOrError[None]]:
        """Delete committed offsets; GroupSubscribedToTopic where a member still reads the topic."""
        request = OffsetDeleteRequest(group_id=group_id)
        for topic, numbers in by_topic(partitions).items():
            row_class = OffsetDeleteRequest.Topics.Partitions
            rows = [row_class(partition_index=number) for number in numbers]
            request.topics.append(OffsetDeleteRequest.Topics(name=topic, partitions=rows))

        async def call(_: Node, connection: BrokerConnection) -> dict[TopicPartition, ResultOrError[None]]:
            response = await connection.send_request(request, OffsetDeleteResponse)
            check(response.error_code, group_id)
            return {
                TopicPartition(topic.name, row.partition_index): outcome_of(None, row.error_code)
                for topic in response.topics
                for row in topic.partitions
            }

        return await self._at_coordinator("deleting committed offsets", group_id, call, timeout_ms)


def _refuse_unstable(found: Offsets) -> None:
    """Raise what the whole request must be repeated for."""
    for outcome in found.values():
        if isinstance(outcome, UnstableOffsetCommit):
            raise outcome
