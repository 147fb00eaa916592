"""How the controller handles brokers that start, stop, or lose a disk."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from odradek.cluster.controller.controller_session import ControllerSession
from odradek.cluster.controller.event_handlers.topic_deletion_manager import TopicDeletionManager
from odradek.cluster.controller.events import BrokerChanged, BrokersChanged
from odradek.cluster.controller.state.context import PartitionReplica, PartitionState, ReplicaState
from odradek.cluster.membership.brokers import Broker
from odradek.cluster.membership.registrations import read_broker, read_brokers
from odradek.common.ids import TopicPartition

logger = logging.getLogger(__name__)


class BrokerChanges:
    """Owned by the controller's event loop, for one term."""

    def __init__(self, session: ControllerSession, deleting: TopicDeletionManager) -> None:
        self._session = session
        self._context = session.context
        self._deleting = deleting

    async def read_registered(self) -> dict[int, Broker]:
        """Every registered broker; each further change becomes an event."""
        return await read_brokers(
            self._session.store,
            self._session.watcher(BrokersChanged()),
            lambda broker_id: self._session.watcher(BrokerChanged(broker_id)),
        )

    async def brokers_changed(self) -> bool:
        """Compare the registrations with the known ones; a new epoch of an id is a failure and a start.

        Returns whether a broker has started.
        """
        registered = await self.read_registered()
        known = self._context.brokers
        kept = {
            id_ for id_, broker in registered.items() if id_ in known and known[id_].epoch == broker.epoch
        }
        gone = known.keys() - kept
        come = registered.keys() - kept
        if gone:
            await self.brokers_failed(gone)
        if come:
            await self.brokers_started([registered[id_] for id_ in sorted(come)])
        return bool(come)

    async def restarted_unseen(self, replicas: Iterable[PartitionReplica]) -> None:
        """Replicas that are in an ISR from before a restart of their broker that no controller noticed."""
        stale = [one for one in replicas if not self._is_queued(one.partition)]
        if not stale:
            return
        broker_ids = sorted({one.broker_id for one in stale})
        logger.info(
            "brokers %s have restarted; %d replicas have to come in sync again", broker_ids, len(stale)
        )
        offline = self._context.offline_directories
        for partition, broker_id in stale:
            offline.setdefault(broker_id, set()).add(partition)
        await self.replicas_failed(stale)
        for partition, broker_id in stale:
            offline[broker_id].discard(partition)
        await self._session.transitions.move_replicas(stale, ReplicaState.ONLINE)
        await self.elect_where_possible()

    async def broker_changed(self, broker_id: int) -> None:
        """A registration was changed: send the broker's new endpoints to all brokers."""
        watcher = self._session.watcher(BrokerChanged(broker_id))
        broker = await read_broker(self._session.store, broker_id, watcher)
        known = self._context.brokers.get(broker_id)
        if broker is None or known is None or broker.epoch != known.epoch or broker == known:
            return  # its start or failure is another event
        self._context.brokers[broker_id] = broker
        self._session.channels.remove(broker_id)
        self._session.channels.add(broker)
        self._session.batch.add_full_state([broker_id])
        self._session.batch.add_update_metadata(self._context.brokers)

    async def brokers_failed(self, broker_ids: Iterable[int]) -> None:
        """Elect other leaders for their partitions, and remove their replicas from every ISR."""
        failed = sorted(broker_ids)
        logger.info("brokers failed: %s", failed)
        for broker_id in failed:
            del self._context.brokers[broker_id]
            self._context.shutting_down.discard(broker_id)
            self._context.offline_directories.pop(broker_id, None)
            self._session.channels.remove(broker_id)
        self._session.batch.add_update_metadata(self._context.brokers)
        await self.replicas_failed(self._context.replicas_on(failed))

    async def brokers_started(self, brokers: Iterable[Broker]) -> None:
        """Send them the full state, bring their replicas online, and elect missing leaders."""
        started = list(brokers)
        logger.info("brokers started: %s", [broker.broker_id for broker in started])
        self._session.batch.add_update_metadata(self._context.brokers)
        for broker in started:
            self._context.brokers[broker.broker_id] = broker
            self._session.channels.add(broker)
        broker_ids = [broker.broker_id for broker in started]
        self._session.batch.add_full_state(broker_ids)
        replicas = self._context.replicas_on(broker_ids)
        await self._session.transitions.move_replicas(
            [one for one in replicas if not self._is_queued(one.partition)], ReplicaState.ONLINE
        )
        await self.elect_where_possible()
        await self._deleting.lift({one.partition.topic for one in replicas})

    async def replicas_failed(self, replicas: Iterable[PartitionReplica]) -> None:
        """Replicas that cannot be served any more: their broker or their disk failed."""
        failed = list(replicas)
        serving = [one for one in failed if not self._is_queued(one.partition)]
        lost = {
            one.partition
            for one in serving
            if one.partition in self._context.leadership and not self._context.has_live_leader(one.partition)
        }
        self._session.transitions.take_partitions_offline(lost)
        await self.elect_where_possible()
        await self._session.transitions.move_replicas(serving, ReplicaState.OFFLINE)
        await self._deleting.fail([one for one in failed if self._is_queued(one.partition)])

    async def elect_where_possible(self, is_wanted: Callable[[TopicPartition], bool] | None = None) -> None:
        """Elect leaders for all partitions without one."""
        leaderless = [
            partition
            for partition, state in self._context.partition_states.items()
            if state in (PartitionState.NEW, PartitionState.OFFLINE)
            and not self._is_queued(partition)
            and (is_wanted is None or is_wanted(partition))
        ]
        refused = await self._session.transitions.bring_online(leaderless)
        if refused:
            logger.warning("%d partitions remain without a leader", len(refused))

    async def directories_changed(self, broker_id: int) -> None:
        """A disk failed, or has space again: the broker's responses show which replicas it serves.

        Replicas to be deleted are not in the LeaderAndIsr request; they get a StopReplica request.
        """
        leaving = set()
        for partition, _ in self._context.replicas_on([broker_id]):
            if self._is_queued(partition):
                leaving.add(partition)
            else:
                self._session.batch.add_leader_and_isr([broker_id], partition)
        self._context.offline_directories.get(broker_id, set()).difference_update(leaving)
        await self._deleting.lift({one.topic for one in leaving})

    async def replica_errors_received(
        self, broker_id: int, failed: set[TopicPartition], served: set[TopicPartition]
    ) -> None:
        """A broker has reported which of its replicas are on a failed disk."""
        known = self._context.offline_directories.setdefault(broker_id, set())
        newly_failed, returned = failed - known, served & known
        known |= failed
        known -= served
        if newly_failed:
            logger.warning("broker %d cannot serve %d replicas", broker_id, len(newly_failed))
            await self.replicas_failed([PartitionReplica(one, broker_id) for one in newly_failed])
        if returned:
            back = [PartitionReplica(one, broker_id) for one in returned if not self._is_queued(one)]
            await self._session.transitions.move_replicas(back, ReplicaState.ONLINE)
            await self.elect_where_possible()

    def _is_queued(self, partition: TopicPartition) -> bool:
        return self._context.is_queued_for_deletion(partition.topic)
