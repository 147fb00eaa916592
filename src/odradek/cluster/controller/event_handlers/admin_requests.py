"""Requests to the controller: AlterPartition, ControlledShutdown, ElectLeaders."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from odradek.cluster.controller.controller_session import ControllerSession
from odradek.cluster.controller.events import ElectionResults
from odradek.cluster.controller.state.alter_partition import IsrDecision, ProposedIsr, decide_isr_change
from odradek.cluster.controller.state.context import (
    LeaderAndIsr,
    LeaderRecoveryState,
    ReplicaState,
)
from odradek.cluster.controller.state.election import Election
from odradek.cluster.controller.state.state_nodes import change_states
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.common.repeated_warnings import RepeatedWarnings
from odradek.protocol.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

logger = logging.getLogger(__name__)

# No topic has this name, so its partitions are unknown.
UNKNOWN_NAME = ""

_RECOVERY_STATES = frozenset(LeaderRecoveryState)

_RequestRow = AlterPartitionRequest.Topics.Partitions
_ResponseRow = AlterPartitionResponse.Topics.Partitions


class AdminRequests:
    """Owned by the controller's event loop, for one term."""

    def __init__(self, session: ControllerSession) -> None:
        self._session = session
        self._context = session.context
        self._warnings = RepeatedWarnings()

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Write the valid changes in as few transactions as possible, and notify every broker (KIP-497)."""
        epoch = self._context.broker_epoch(request.broker_id)
        if request.broker_epoch != epoch:
            self._log_stale_broker(request.broker_id, request.broker_epoch, epoch)
            return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        decisions: dict[TopicPartition, IsrDecision] = {}
        for topic in request.topics:
            for row in topic.partitions:
                partition = TopicPartition(self._name(topic), row.partition_index)
                change = _isr_change(request.broker_id, row)
                decisions[partition] = (
                    IsrDecision(ErrorCode.INVALID_REQUEST)
                    if change is None
                    else decide_isr_change(self._context, partition, change)
                )
        await self._write(decisions)
        response = AlterPartitionResponse()
        for topic in request.topics:
            name = self._name(topic)
            answered = AlterPartitionResponse.Topics(topic_name=topic.topic_name, topic_id=topic.topic_id)
            for row in topic.partitions:
                decision = decisions[TopicPartition(name, row.partition_index)]
                if name == UNKNOWN_NAME:
                    decision = IsrDecision(ErrorCode.UNKNOWN_TOPIC_ID)
                answered.partitions.append(_row(row.partition_index, decision))
            response.topics.append(answered)
        return response

    def _log_stale_broker(self, broker_id: int, given: int, registered: int) -> None:
        if self._warnings.is_due(broker_id, self._session.clock.now_ms()):
            logger.warning(
                "AlterPartition of broker %d is refused: its broker epoch is %d, the registered one is %d",
                broker_id,
                given,
                registered,
            )

    def partitions_of(self, request: AlterPartitionRequest) -> list[TopicPartition]:
        """The partitions that a request names."""
        return [
            TopicPartition(self._name(topic), row.partition_index)
            for topic in request.topics
            for row in topic.partitions
        ]

    def _name(self, topic: AlterPartitionRequest.Topics) -> str:
        """From version 2 on a topic is named by its id."""
        return topic.topic_name or self._context.topic_named(topic.topic_id) or UNKNOWN_NAME

    async def _write(self, decisions: dict[TopicPartition, IsrDecision]) -> None:
        """Write the new states; one that was changed concurrently becomes an error."""
        granted = {
            partition: decision.state
            for partition, decision in decisions.items()
            if decision.is_new and decision.state is not None
        }
        written = await change_states(self._session.fenced, granted)
        for partition, state in written.states.items():
            self._context.leadership[partition] = state
            decisions[partition] = IsrDecision(ErrorCode.NONE, state)
        await self._session.transitions.read_again(written.conflicts)
        for partition in written.conflicts:
            decisions[partition] = IsrDecision(ErrorCode.INVALID_UPDATE_VERSION)
            # Its leader waits for the state that was written by others.
            self._session.batch.add_leader_and_isr(self._replicas(partition), partition)
        self._session.batch.add_update_metadata(self._context.brokers, [*written.states, *written.conflicts])

    async def controlled_shutdown(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        """Move leaders from a broker and remove it from ISRs, except where it is the only replica."""
        broker_id = request.broker_id
        if broker_id not in self._context.brokers:
            return ControlledShutdownResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)
        if request.broker_epoch not in (-1, self._context.broker_epoch(broker_id)):
            return ControlledShutdownResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        self._context.shutting_down.add(broker_id)
        held = [one for one in self._context.replicas_on([broker_id]) if self._is_replicated(one.partition)]
        led = [one.partition for one in held if self._is_led_by(one.partition, broker_id)]
        await self._session.transitions.bring_online(led, Election.CONTROLLED_SHUTDOWN)
        followed = [one for one in held if not self._is_led_by(one.partition, broker_id)]
        await self._session.transitions.move_replicas(followed, ReplicaState.OFFLINE)
        remaining = [one.partition for one in held if self._is_led_by(one.partition, broker_id)]
        logger.info("broker %d shuts down; it still leads %d partitions", broker_id, len(remaining))
        return ControlledShutdownResponse(
            remaining_partitions=[
                ControlledShutdownResponse.RemainingPartitions(
                    topic_name=one.topic, partition_index=one.partition
                )
                for one in remaining
            ]
        )

    def _is_replicated(self, partition: TopicPartition) -> bool:
        is_queued = self._context.is_queued_for_deletion(partition.topic)
        return partition in self._context.leadership and not is_queued and len(self._replicas(partition)) > 1

    def _is_led_by(self, partition: TopicPartition, broker_id: int) -> bool:
        state = self._context.leadership.get(partition)  # None if its node was damaged meanwhile
        return state is not None and state.leader == broker_id

    def _replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        return self._context.assignment(partition).replicas

    async def elect_leaders(
        self, election: Election, partitions: Iterable[TopicPartition] | None
    ) -> ElectionResults:
        """Preferred or unclean elections; None means all partitions, and returns only those that changed."""
        asked = list(self._context.partitions() if partitions is None else partitions)
        results = {one: self._why_no_election(election, one) for one in asked}
        needed = [one for one, error in results.items() if error is ErrorCode.NONE]
        results.update(await self._session.transitions.bring_online(needed, election))
        if partitions is None:
            results = {
                one: error for one, error in results.items() if error is not ErrorCode.ELECTION_NOT_NEEDED
            }
        return results

    def _why_no_election(self, election: Election, partition: TopicPartition) -> ErrorCode:
        state = self._context.leadership.get(partition)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._context.is_queued_for_deletion(partition.topic):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if election is Election.PREFERRED:
            is_fine = state.leader == self._replicas(partition)[0]
        else:
            is_fine = self._context.has_live_leader(partition)
        return ErrorCode.ELECTION_NOT_NEEDED if is_fine else ErrorCode.NONE


def _isr_change(broker_id: int, row: _RequestRow) -> ProposedIsr | None:
    """None if the row holds a recovery state that does not exist."""
    if row.leader_recovery_state not in _RECOVERY_STATES:
        return None
    epochs = {one.broker_id: one.broker_epoch for one in row.new_isr_with_epochs}
    return ProposedIsr(
        leader=broker_id,
        leader_epoch=row.leader_epoch,
        partition_epoch=row.partition_epoch,
        isr=epochs or dict.fromkeys(row.new_isr, -1),
        recovery_state=LeaderRecoveryState(row.leader_recovery_state),
    )


def _row(partition_index: int, decision: IsrDecision) -> _ResponseRow:
    row = _ResponseRow(partition_index=partition_index, error_code=decision.error)
    if decision.state is not None:
        _fill(row, decision.state)
    return row


def _fill(row: _ResponseRow, state: LeaderAndIsr) -> None:
    row.leader_id = state.leader
    row.leader_epoch = state.leader_epoch
    row.isr = list(state.isr)
    row.leader_recovery_state = state.recovery_state
    row.partition_epoch = state.partition_epoch
