"""Asks the controller for other in-sync replicas (AlterPartition, KIP-497): many partitions in one request.

One request is in flight at a time; what is proposed meanwhile goes with the next one. A request without a
response is sent again: the controller accepts a change that is already in force.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError, OdradekError
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from odradek.protocol.structs import Message
from odradek.replication.counters import ReplicationCounters
from odradek.replication.isr import IsrChange, after_error
from odradek.replication.partition import Partition

logger = logging.getLogger(__name__)

RETRY_BACKOFF_S = 0.05
MAX_RETRY_BACKOFF_S = 1.0

Send = Callable[[AlterPartitionRequest], Awaitable[Message]]
"""Sends to the present controller; OdradekError if there is no response."""

_Topic = AlterPartitionRequest.Topics
_Asked = AlterPartitionRequest.Topics.Partitions
_Member = AlterPartitionRequest.Topics.Partitions.NewIsrWithEpochs
_Row = AlterPartitionResponse.Topics.Partitions


class Proposal(NamedTuple):
    """One change that waits for its response."""

    partition: Partition
    change: IsrChange


class IsrChanges:
    """The `IsrPort` of the partitions of this broker. Owned by the replica manager, on the loop."""

    def __init__(
        self,
        broker_id: int,
        send: Send,
        broker_epoch: Callable[[], int],
        registered_epoch: Callable[[int], int | None],
        counters: ReplicationCounters,
        *,
        max_lag_ms: int,
        retry_backoff_s: float = RETRY_BACKOFF_S,
    ) -> None:
        self.max_lag_ms = max_lag_ms
        self._broker_id = broker_id
        self._send = send
        self._broker_epoch = broker_epoch
        self._registered_epoch = registered_epoch
        self._counters = counters
        self._retry_backoff_s = retry_backoff_s
        self._proposed: dict[TopicPartition, Proposal] = {}
        self._sending: asyncio.Task[None] | None = None
        self._is_stopped = False

    def propose(self, partition: Partition, change: IsrChange) -> None:
        """Send the change with the next request; the partition is notified of the outcome."""
        self._proposed[partition.topic_partition] = Proposal(partition, change)
        if self._is_stopped:
            return
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_all())

    def registered_epoch(self, broker_id: int) -> int | None:
        """The broker epoch of a live broker, -1 if it is not known; None if the broker is not alive."""
        return self._registered_epoch(broker_id)

    async def stop(self) -> None:
        """Send nothing more."""
        self._is_stopped = True
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    async def _send_all(self) -> None:
        """Send until nothing is left; a task root."""
        failures = 0
        while self._proposed:
            proposed, self._proposed = self._proposed, {}
            proposed = {key: one for key, one in proposed.items() if one.partition.is_asking_for(one.change)}
            if not proposed:
                continue
            refused_before = self._counters.failed_isr_updates
            try:
                response = await self._send(self._request(proposed.values()))
                assert isinstance(response, AlterPartitionResponse)
                unsettled = self._settle(proposed, response)
            except OdradekError as error:
                level = logging.DEBUG if failures else logging.WARNING
                logger.log(level, "Cannot ask the controller for other in-sync replicas yet: %s", error)
                unsettled = proposed
            except Exception:  # a task root: the next proposal must start another one
                logger.exception("A request for other in-sync replicas failed")
                unsettled = proposed
            if unsettled:
                # A newer proposal of the same partition has replaced the one that failed.
                self._proposed = unsettled | self._proposed
                failures += 1
                await asyncio.sleep(
                    min(self._retry_backoff_s * 2 ** min(failures - 1, 20), MAX_RETRY_BACKOFF_S)
                )
            else:
                failures = 0
                if self._counters.failed_isr_updates > refused_before:
                    # The follower still fetches, so that the same change is proposed again at once.
                    await asyncio.sleep(self._retry_backoff_s)

    def _request(self, proposed: Iterable[Proposal]) -> AlterPartitionRequest:
        topics: dict[bytes, _Topic] = {}
        for partition, change in proposed:
            topic = topics.get(partition.topic_id)
            if topic is None:
                topic = topics[partition.topic_id] = _Topic(topic_id=partition.topic_id)
            members = zip(change.isr, change.broker_epochs, strict=True)
            topic.partitions.append(
                _Asked(
                    partition_index=partition.topic_partition.partition,
                    leader_epoch=change.leader_epoch,
                    new_isr_with_epochs=[
                        _Member(broker_id=broker_id, broker_epoch=epoch) for broker_id, epoch in members
                    ],
                    leader_recovery_state=partition.state.recovery_state,
                    partition_epoch=change.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id, broker_epoch=self._broker_epoch(), topics=list(topics.values())
        )

    def _settle(
        self, proposed: dict[TopicPartition, Proposal], response: AlterPartitionResponse
    ) -> dict[TopicPartition, Proposal]:
        """Notify the partitions of their outcomes; the proposals that must be sent again."""
        if response.error_code != ErrorCode.NONE:
            raise KafkaError("AlterPartition was refused", error_code=ErrorCode(response.error_code))
        rows = {
            (topic.topic_id, row.partition_index): row
            for topic in response.topics
            for row in topic.partitions
        }
        unsettled = {}
        for key, proposal in proposed.items():
            row = rows.get((proposal.partition.topic_id, key.partition))
            if proposal.partition.is_asking_for(proposal.change) and (
                row is None or not self._settle_one(proposal, row)
            ):
                unsettled[key] = proposal
        return unsettled

    def _settle_one(self, proposal: Proposal, row: _Row) -> bool:
        """Apply one outcome; False if the change must be sent again."""
        partition, change = proposal
        if row.error_code != ErrorCode.NONE:
            self._counters.failed_isr_updates += 1
            error_code = ErrorCode(row.error_code)
            after = after_error(error_code)
            logger.warning(
                "%s: the controller refused the in-sync replicas %s: %s",
                partition.topic_partition,
                list(change.isr),
                error_code.name,
            )
            if after.gives_up:
                partition.isr_refused()
            return after.gives_up or after.waits
        if row.leader_epoch != change.leader_epoch:
            return True  # a newer leader epoch; LeaderAndIsr brings it
        before = partition.isr
        if partition.isr_changed(tuple(row.isr), row.partition_epoch):
            self._note(partition, before)
        return True

    def _note(self, partition: Partition, before: tuple[int, ...]) -> None:
        isr = partition.isr
        if len(isr) < len(before):
            self._counters.isr_shrinks += 1
        elif len(isr) > len(before):
            self._counters.isr_expands += 1
        logger.info("%s: in-sync replicas %s, before %s", partition.topic_partition, list(isr), list(before))
