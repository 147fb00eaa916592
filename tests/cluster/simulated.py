"""Several brokers in one process over one store, on a network that loses requests and answers."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from odradek.cluster.control_fence import ControlFence
from odradek.cluster.controller.channels import BrokerChannel, DeliveryFailed, LocalChannel
from odradek.cluster.controller.events import ControlResponse
from odradek.cluster.controller.requests import ControlRequest
from odradek.cluster.membership.brokers import Broker
from odradek.cluster.metadata import UPDATE_TYPE_FULL, MetadataImage
from odradek.cluster.node import ClusterNode, NodeHooks, NodeSettings
from odradek.cluster.topics.placement import BrokerLocation
from odradek.cluster.topics.topic_admin import TopicAdmin
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.coordination.paths import ConfigEntity
from odradek.coordination.payloads import Listener
from odradek.protocol.messages import (
    AlterPartitionRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from odradek.testing.memory_store import MemoryEnsemble, MemoryStore

LISTENER = "PLAINTEXT"

_Told = LeaderAndIsrRequest.TopicStates.PartitionStates


@dataclass
class Hosted:
    """A replica as of the last request to its broker."""

    topic_id: bytes
    state: _Told


class SimulatedBroker:
    """Obeys the controller as a broker must, and keeps its replicas over restarts."""

    def __init__(self, cluster: SimulatedCluster, broker_id: int) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.hosted: dict[TopicPartition, Hosted] = {}
        self.is_alive = False
        self.changed_configs: list[ConfigEntity] = []
        self.fatal: Exception | None = None
        # What replicas have got over all restarts; a leader epoch must never go back.
        self.seen_epochs: dict[tuple[bytes, int], int] = {}

    async def start(self) -> None:
        self.fence = ControlFence()
        self.image = MetadataImage("")
        self.local = LocalChannel(self.handle_request)
        hooks = NodeHooks(
            connect=self._connect,
            on_registered=self._registered,
            on_brokers=lambda brokers: self.image.set_broker_epochs(
                {id_: broker.epoch for id_, broker in brokers.items()}
            ),
            on_config_change=self._config_changed,
            load_configs=self._load_configs,
            on_fatal=self._failed,
            allows_unclean=self.cluster.unclean_topics.__contains__,
        )
        settings = NodeSettings(broker_id=self.broker_id, session_timeout_ms=6000)
        self.node = ClusterNode(self._open_store, settings, hooks)
        await self.node.connect()
        self.image.cluster_id = self.node.cluster_id
        await self.node.join((Listener(LISTENER, f"host{self.broker_id}", 9092),))
        self.is_alive = True

    async def stop(self) -> None:
        self.is_alive = False
        await self.node.leave()

    @property
    def store(self) -> MemoryStore:
        store = self.node.store
        assert isinstance(store, MemoryStore)
        return store

    async def _load_configs(self) -> None:
        """It keeps no settings, only what has changed."""

    async def _open_store(self) -> MemoryStore:
        await asyncio.sleep(self.cluster.rng.random() / 10)
        return self.cluster.ensemble.open_session()

    def _registered(self, epoch: int) -> None:
        self.fence.broker_epoch = epoch

    async def _config_changed(self, entity: ConfigEntity) -> None:
        self.changed_configs.append(entity)

    def _failed(self, error: Exception) -> None:
        self.fatal = error

    def _connect(self, broker: Broker) -> BrokerChannel:
        if broker.broker_id == self.broker_id:
            return self.local
        return RemoteChannel(self.cluster, broker.broker_id)

    async def handle_request(self, request: ControlRequest) -> ControlResponse:
        await asyncio.sleep(self.cluster.rng.random() / 100)
        refusal = self.fence.admit(request.controller_id, request.controller_epoch, request.broker_epoch)
        refused = ErrorCode.NONE if refusal is None else refusal.error_code
        if isinstance(request, UpdateMetadataRequest):
            if not refused:
                self.image.update(request)
            return UpdateMetadataResponse(error_code=refused)
        if isinstance(request, LeaderAndIsrRequest):
            return LeaderAndIsrResponse(error_code=refused, topics=[] if refused else self._host(request))
        if not refused:
            self._stop_replicas(request)
        return StopReplicaResponse(error_code=refused)

    def _host(self, request: LeaderAndIsrRequest) -> list[LeaderAndIsrResponse.Topics]:
        reported: set[TopicPartition] = set()
        for topic in request.topic_states:
            for state in topic.partition_states:
                partition = TopicPartition(topic.topic_name, state.partition_index)
                reported.add(partition)
                key = (topic.topic_id, state.partition_index)
                assert state.leader_epoch >= self.seen_epochs.get(key, 0), f"{partition}: an epoch went back"
                assert self.broker_id in state.replicas, f"{partition} does not belong on {self.broker_id}"
                self.seen_epochs[key] = state.leader_epoch
                self.hosted[partition] = Hosted(topic.topic_id, state)
        if request.type == UPDATE_TYPE_FULL:
            for stray in self.hosted.keys() - reported:
                del self.hosted[stray]
        return [LeaderAndIsrResponse.Topics(topic_id=topic.topic_id) for topic in request.topic_states]

    def _stop_replicas(self, request: StopReplicaRequest) -> None:
        for topic in request.topic_states:
            for state in topic.partition_states:
                if state.delete_partition:
                    self.hosted.pop(TopicPartition(topic.topic_name, state.partition_index), None)

    async def propose_isrs(self) -> None:
        """As a leader does when followers have caught up: every live replica is to be in sync."""
        active = self.cluster.active_controllers()
        live = {one.broker_id: one.node.broker_epoch for one in self.cluster.brokers.values() if one.is_alive}
        for partition, hosted in list(self.hosted.items()):
            state = hosted.state
            isr = {id_: live[id_] for id_ in state.replicas if id_ in live}
            if not active or state.leader != self.broker_id or set(isr) == set(state.isr):
                continue
            request = self._alter_request(partition, hosted, isr)
            response = await active[0].node.controller.alter_partition(request)
            for topic in response.topics:
                for row in topic.partitions:
                    is_same = self.hosted.get(partition) is hosted and hosted.state is state
                    if row.error_code == ErrorCode.NONE and is_same:
                        state.isr, state.partition_epoch = list(row.isr), row.partition_epoch

    def _alter_request(
        self, partition: TopicPartition, hosted: Hosted, isr: dict[int, int]
    ) -> AlterPartitionRequest:
        proposed = AlterPartitionRequest.Topics.Partitions(
            partition_index=partition.partition,
            leader_epoch=hosted.state.leader_epoch,
            partition_epoch=hosted.state.partition_epoch,
            new_isr_with_epochs=[
                AlterPartitionRequest.Topics.Partitions.NewIsrWithEpochs(broker_id=id_, broker_epoch=epoch)
                for id_, epoch in isr.items()
            ],
        )
        topic = AlterPartitionRequest.Topics(topic_id=hosted.topic_id, partitions=[proposed])
        return AlterPartitionRequest(
            broker_id=self.broker_id, broker_epoch=self.node.broker_epoch, topics=[topic]
        )


@dataclass
class RemoteChannel:
    """The way to another broker: requests and answers get lost now and then."""

    cluster: SimulatedCluster
    broker_id: int

    async def send(self, request: ControlRequest) -> ControlResponse:
        rng = self.cluster.rng
        await asyncio.sleep(rng.random() / 20)
        broker = self.cluster.brokers[self.broker_id]
        if not broker.is_alive or rng.random() < self.cluster.loss:
            raise DeliveryFailed(f"broker {self.broker_id} does not answer")
        version = request.SPEC.versions[1]
        decoded, _ = type(request).decode(request.encode(version), version)
        response = await broker.local.send(decoded)
        await asyncio.sleep(rng.random() / 20)
        if rng.random() < self.cluster.loss:
            raise DeliveryFailed("the answer got lost")
        return response

    async def close(self) -> None:
        pass


@dataclass
class SimulatedCluster:
    """Brokers by id, dead or alive."""

    rng: random.Random
    ensemble: MemoryEnsemble
    loss: float = 0.0
    unclean_topics: set[str] = field(default_factory=set)
    brokers: dict[int, SimulatedBroker] = field(default_factory=dict)

    @classmethod
    async def start(cls, count: int, seed: int = 0, loss: float = 0.0) -> SimulatedCluster:
        cluster = cls(random.Random(seed), MemoryEnsemble(), loss)
        for broker_id in range(count):
            cluster.brokers[broker_id] = SimulatedBroker(cluster, broker_id)
            await cluster.brokers[broker_id].start()
        await cluster.settle()
        return cluster

    async def settle(self, seconds: float = 3.0) -> None:
        """Let everything that is under way come to its end; costs no real time."""
        await asyncio.sleep(seconds)

    async def stop(self) -> None:
        for broker in self.live():
            await broker.stop()

    def live(self) -> list[SimulatedBroker]:
        return [broker for broker in self.brokers.values() if broker.is_alive]

    def active_controllers(self) -> list[SimulatedBroker]:
        return [broker for broker in self.live() if broker.node.controller.is_active]

    def admin(self) -> TopicAdmin:
        """Administers through the first live broker whose session is sure."""
        broker = self.live()[0]
        sites = [BrokerLocation(one.broker_id) for one in self.live()]
        return TopicAdmin(lambda: broker.node.store, lambda: sites, rng=self.rng)
