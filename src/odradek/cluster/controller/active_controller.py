"""The elected controller: what it reads first, and how it handles each event."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from odradek.cluster.controller import events
from odradek.cluster.controller.controller_session import ControllerSession
from odradek.cluster.controller.event_handlers.admin_requests import AdminRequests
from odradek.cluster.controller.event_handlers.broker_changes import BrokerChanges
from odradek.cluster.controller.event_handlers.notification_znodes import NotificationZnodes
from odradek.cluster.controller.event_handlers.reassignments import Reassignments
from odradek.cluster.controller.event_handlers.topic_changes import TopicChanges
from odradek.cluster.controller.event_handlers.topic_deletion_manager import TopicDeletionManager
from odradek.cluster.controller.fenced_store import ControllerMoved
from odradek.cluster.controller.requests import RequestBatch
from odradek.cluster.controller.state.context import PartitionReplica, PartitionState, ReplicaState
from odradek.cluster.controller.state.election import Election
from odradek.cluster.controller.state.rebalance import imbalanced_partitions
from odradek.cluster.controller.state.restarts import replicas_of_restarted_brokers
from odradek.cluster.controller.state.state_nodes import ReadState, read_state_nodes
from odradek.cluster.membership.brokers import Broker
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
)

logger = logging.getLogger(__name__)

ANSWER_S = 3.0
"""A live broker answers an UpdateMetadata request within that time."""


class ActiveControllerSettings(NamedTuple):
    """The part of the broker's configuration that the controller uses."""

    is_delete_topic_enabled: bool = True
    leader_imbalance_per_broker_percentage: int = 10


class ActiveController:
    """Owned by the controller's loop, which calls one method at a time."""

    def __init__(
        self, session: ControllerSession, settings: ActiveControllerSettings, new_topic_id: Callable[[], UUID]
    ) -> None:
        self.session = session
        self.context = session.context
        self._settings = settings
        self._deleting = TopicDeletionManager(session, is_enabled=settings.is_delete_topic_enabled)
        self._brokers = BrokerChanges(session, self._deleting)
        self._topics = TopicChanges(session, self._deleting, new_topic_id)
        self._notes = NotificationZnodes(session)
        self._admin_requests = AdminRequests(session)
        self._reassignments = Reassignments(session, self._deleting)

    async def begin(self) -> None:
        """Read the whole state, elect missing leaders, and send the full state to every broker."""
        await self._notes.clear()
        self.context.brokers.update(await self._brokers.read_registered())
        for broker in self.context.brokers.values():
            self.session.channels.add(broker)
        partitions = await self._topics.load_topics(await self._topics.read_names())
        nodes = await read_state_nodes(self.session.store, partitions)
        self.context.leadership.update((one, node.state) for one, node in nodes.items())
        await self.session.transitions.watch_damaged(one for one in partitions if one not in nodes)
        restarted = await self._restarted_replicas(nodes)
        self._set_initial_states()
        self.session.batch.add_full_state(self.context.brokers)
        dead = [
            one
            for one, state in self.context.replica_states.items()
            if state is ReplicaState.DELETION_INELIGIBLE
        ]
        await self._brokers.replicas_failed(dead)
        await self._brokers.restarted_unseen(restarted)
        await self._deleting.deletions_changed()
        await self._notes.preferred_election_changed(self._admin_requests)
        await self._reassignments.resume()
        await self._reassignments.node_changed()
        self.session.send_requests()
        logger.info(
            "controller of epoch %d: %d brokers, %d topics, %d partitions",
            self.context.epoch,
            len(self.context.brokers),
            len(self.context.assignments),
            len(partitions),
        )

    async def _restarted_replicas(self, nodes: Mapping[TopicPartition, ReadState]) -> list[PartitionReplica]:
        """Replicas of brokers that have restarted unseen, where another one in sync has not, and answers.

        One that does not answer may be dead, its session not expired yet: it must not become the only one
        in sync.
        """
        epochs = {broker_id: broker.epoch for broker_id, broker in self.context.brokers.items()}
        restarted = {one.broker_id for one in replicas_of_restarted_brokers(nodes, epochs)}
        if not restarted:
            return []
        others = [broker for broker_id, broker in self.context.brokers.items() if broker_id not in restarted]
        answers = await asyncio.gather(*map(self._answers, others))
        silent = {broker.broker_id for broker, answers in zip(others, answers, strict=True) if not answers}
        epochs = {broker_id: epoch for broker_id, epoch in epochs.items() if broker_id not in silent}
        return replicas_of_restarted_brokers(nodes, epochs)

    async def _answers(self, broker: Broker) -> bool:
        """Whether a broker accepts an UpdateMetadata request in this controller epoch."""
        if broker.broker_id == self.session.batch.controller_id:
            return True
        batch = RequestBatch(self.session.batch.controller_id, self.session.batch.inter_broker_listener)
        batch.add_update_metadata([broker.broker_id])
        ((_, request),) = batch.drain(self.context)
        response = await self.session.channels.ask_once(broker, request, ANSWER_S)
        return response is not None and response.error_code == ErrorCode.NONE

    def _set_initial_states(self) -> None:
        """The states according to the store; a topic without partition states is new."""
        context = self.context
        for partition in context.partitions():
            if partition not in context.leadership:
                state = PartitionState.NEW
            elif context.has_live_leader(partition):
                state = PartitionState.ONLINE
            else:
                state = PartitionState.OFFLINE
            context.set_partition_state(partition, state)
        for replica in context.replicas_of(context.partitions()):
            is_online = context.is_replica_online(replica.broker_id, replica.partition)
            # The table leads from there to Offline, which removes dead brokers from every ISR.
            state_of_dead = ReplicaState.DELETION_INELIGIBLE
            context.set_replica_state(replica, ReplicaState.ONLINE if is_online else state_of_dead)

    async def handle(self, event: events.Event) -> None:
        """Handle an event, then send the resulting requests."""
        await self._react(event)
        self.session.send_requests()

    async def _react(self, event: events.Event) -> None:
        match event:
            case events.BrokersChanged():
                if await self._brokers.brokers_changed():
                    await self._reassignments.resume()
            case events.BrokerChanged():
                await self._brokers.broker_changed(event.broker_id)
            case events.TopicsChanged():
                await self._topics.topics_changed()
            case events.PartitionsChanged():
                await self._topics.partitions_changed(event.topic)
            case events.DamagedStatesChanged():
                await self.session.transitions.read_repaired()
                await self._brokers.elect_where_possible()
            case events.DeletionsChanged():
                await self._deleting.deletions_changed()
            case events.PreferredElectionChanged():
                await self._notes.preferred_election_changed(self._admin_requests)
            case events.ReassignmentsChanged():
                await self._reassignments.node_changed()
            case events.IsrChangesNotified():
                await self._reassignments.isr_changed(await self._notes.isr_changes_notified())
            case events.LogDirEventsNotified():
                for broker_id in await self._notes.log_dir_events():
                    await self._brokers.directories_changed(broker_id)
            case events.TopicConfigChanged():
                await self._brokers.elect_where_possible(lambda one: one.topic == event.topic)
            case events.RebalanceDue():
                await self._rebalance()
            case events.ResponseReceived():
                await self._response_received(event)
            case events.AlterPartitionRequested():
                event.reply(await self._admin_requests.alter_partition(event.request))
                await self._reassignments.isr_changed(self._admin_requests.partitions_of(event.request))
            case events.ControlledShutdownRequested():
                event.reply(await self._admin_requests.controlled_shutdown(event.request))
            case events.ElectionRequested():
                event.reply(await self._admin_requests.elect_leaders(event.election, event.partitions))
            case events.ReassignmentRequested():
                event.reply(
                    await self._reassignments.request(
                        event.targets, allows_other_factor=event.allows_other_factor
                    )
                )
            case events.ReassignmentsListed():
                event.reply(self._reassignments.in_progress(event.partitions))

    async def _rebalance(self) -> None:
        """Elect preferred leaders where the imbalance exceeds the limit."""
        imbalanced = imbalanced_partitions(
            self.context, self._settings.leader_imbalance_per_broker_percentage
        )
        if imbalanced:
            logger.info("electing the preferred leaders of %d partitions", len(imbalanced))
            await self.session.transitions.bring_online(imbalanced, Election.PREFERRED)

    async def _response_received(self, event: events.ResponseReceived) -> None:
        request, response = event.request, event.response
        if (
            response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
            and request.controller_epoch == self.context.epoch
        ):
            raise ControllerMoved(f"broker {event.broker_id} follows a newer controller")
        is_current = (
            request.controller_epoch == self.context.epoch
            and request.broker_epoch == self.context.broker_epoch(event.broker_id)
        )
        if not is_current or response.error_code != ErrorCode.NONE:
            return
        if isinstance(request, StopReplicaRequest) and isinstance(response, StopReplicaResponse):
            await self._replicas_stopped(event.broker_id, request, response)
        elif isinstance(request, LeaderAndIsrRequest) and isinstance(response, LeaderAndIsrResponse):
            await self._leader_and_isr_answered(event.broker_id, request, response)

    async def _replicas_stopped(
        self, broker_id: int, request: StopReplicaRequest, response: StopReplicaResponse
    ) -> None:
        failed = {
            TopicPartition(row.topic_name, row.partition_index)
            for row in response.partition_errors
            if row.error_code != ErrorCode.NONE
        }
        asked = [
            TopicPartition(topic.topic_name, state.partition_index)
            for topic in request.topic_states
            for state in topic.partition_states
            if state.delete_partition
        ]
        if asked:
            await self._deleting.replicas_answered(
                [PartitionReplica(one, broker_id) for one in asked if one not in failed],
                [PartitionReplica(one, broker_id) for one in asked if one in failed],
            )

    async def _leader_and_isr_answered(
        self, broker_id: int, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
    ) -> None:
        """A storage error means a failed disk; all other partitions of the request are served."""
        names = {topic.topic_id: topic.topic_name for topic in request.topic_states}
        failed = {
            TopicPartition(names[topic.topic_id], row.partition_index)
            for topic in response.topics
            if topic.topic_id in names
            for row in topic.partition_errors
            if row.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        }
        requested = {
            TopicPartition(topic.topic_name, state.partition_index)
            for topic in request.topic_states
            for state in topic.partition_states
        }
        await self._brokers.replica_errors_received(broker_id, failed, requested - failed)
