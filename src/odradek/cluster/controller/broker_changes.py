"""What the controller does when brokers come, go, or lose a disk."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from odradek.cluster.brokers import Broker
from odradek.cluster.controller.controller_session import ControllerSession
from odradek.cluster.controller.events import BrokerChanged, BrokersChanged
from odradek.cluster.controller.state.context import PartitionReplica, PartitionState, ReplicaState
from odradek.cluster.controller.topic_deletion_manager import TopicDeletionManager
from odradek.cluster.registrations import read_broker, read_brokers
from odradek.common.ids import TopicPartition

logger = logging.getLogger(__name__)


class BrokerChanges:
    """Owned by the controller's event loop, for one term."""

    def __init__(self, office: ControllerSession, deleting: TopicDeletionManager) -> None:
        self._office = office
        self._context = office.context
        self._deleting = deleting

    async def read_registered(self) -> dict[int, Broker]:
        """Every registered broker; each further change becomes an event."""
        return await read_brokers(
            self._office.store,
            self._office.watcher(BrokersChanged()),
            lambda broker_id: self._office.watcher(BrokerChanged(broker_id)),
        )

    async def brokers_changed(self) -> None:
        """Compare registrations with what is known; a new epoch under an old id is a death and a birth."""
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

    async def broker_changed(self, broker_id: int) -> None:
        """A registration was written anew: tell everybody where the broker is now."""
        watcher = self._office.watcher(BrokerChanged(broker_id))
        broker = await read_broker(self._office.store, broker_id, watcher)
        known = self._context.brokers.get(broker_id)
        if broker is None or known is None or broker.epoch != known.epoch or broker == known:
            return  # its birth or death is another event
        self._context.brokers[broker_id] = broker
        self._office.channels.remove(broker_id)
        self._office.channels.add(broker)
        self._office.batch.tell_everything([broker_id])
        self._office.batch.tell_metadata(self._context.brokers)

    async def brokers_failed(self, broker_ids: Iterable[int]) -> None:
        """Their partitions need other leaders, their replicas leave every ISR."""
        failed = sorted(broker_ids)
        logger.info("brokers gone: %s", failed)
        for broker_id in failed:
            del self._context.brokers[broker_id]
            self._context.shutting_down.discard(broker_id)
            self._context.offline_directories.pop(broker_id, None)
            self._office.channels.remove(broker_id)
        self._office.batch.tell_metadata(self._context.brokers)
        await self.replicas_failed(self._context.replicas_on(failed))

    async def brokers_started(self, brokers: Iterable[Broker]) -> None:
        """Tell them everything, take their replicas online, elect where that was the missing one."""
        started = list(brokers)
        logger.info("brokers come: %s", [broker.broker_id for broker in started])
        self._office.batch.tell_metadata(self._context.brokers)
        for broker in started:
            self._context.brokers[broker.broker_id] = broker
            self._office.channels.add(broker)
        broker_ids = [broker.broker_id for broker in started]
        self._office.batch.tell_everything(broker_ids)
        replicas = self._context.replicas_on(broker_ids)
        await self._office.transitions.move_replicas(
            [one for one in replicas if not self._is_queued(one.partition)], ReplicaState.ONLINE
        )
        await self.elect_where_possible()
        await self._deleting.lift({one.partition.topic for one in replicas})

    async def replicas_failed(self, replicas: Iterable[PartitionReplica]) -> None:
        """Replicas that cannot be served any more, by death or by a failed disk."""
        failed = list(replicas)
        serving = [one for one in failed if not self._is_queued(one.partition)]
        lost = {
            one.partition
            for one in serving
            if one.partition in self._context.leadership and not self._context.has_live_leader(one.partition)
        }
        self._office.transitions.lose_partitions(lost)
        await self.elect_where_possible()
        await self._office.transitions.move_replicas(serving, ReplicaState.OFFLINE)
        await self._deleting.fail([one for one in failed if self._is_queued(one.partition)])

    async def elect_where_possible(self, is_wanted: Callable[[TopicPartition], bool] | None = None) -> None:
        """Look for leaders of all partitions without one."""
        leaderless = [
            partition
            for partition, state in self._context.partition_states.items()
            if state in (PartitionState.NEW, PartitionState.OFFLINE)
            and not self._is_queued(partition)
            and (is_wanted is None or is_wanted(partition))
        ]
        refused = await self._office.transitions.bring_online(leaderless)
        if refused:
            logger.warning("%d partitions stay without leader", len(refused))

    async def directories_changed(self, broker_id: int) -> None:
        """A disk was lost, or has room again: the broker's answers will tell which replicas it serves.

        Replicas that are to be deleted are not named to it any more; it is asked to delete them.
        """
        leaving = set()
        for partition, _ in self._context.replicas_on([broker_id]):
            if self._is_queued(partition):
                leaving.add(partition)
            else:
                self._office.batch.tell_leader([broker_id], partition)
        self._context.offline_directories.get(broker_id, set()).difference_update(leaving)
        await self._deleting.lift({one.topic for one in leaving})

    async def directories_told(
        self, broker_id: int, failed: set[TopicPartition], served: set[TopicPartition]
    ) -> None:
        """A broker has said which of its replicas lie on a failed disk."""
        known = self._context.offline_directories.setdefault(broker_id, set())
        newly_failed, returned = failed - known, served & known
        known |= failed
        known -= served
        if newly_failed:
            logger.warning("broker %d cannot serve %d replicas", broker_id, len(newly_failed))
            await self.replicas_failed([PartitionReplica(one, broker_id) for one in newly_failed])
        if returned:
            back = [PartitionReplica(one, broker_id) for one in returned if not self._is_queued(one)]
            await self._office.transitions.move_replicas(back, ReplicaState.ONLINE)
            await self.elect_where_possible()

    def _is_queued(self, partition: TopicPartition) -> bool:
        return self._context.is_queued_for_deletion(partition.topic)
