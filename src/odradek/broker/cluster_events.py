"""Applies what the controller and the store report to this broker: control requests, brokers, settings."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.cluster.brokers import Broker
from odradek.cluster.control_fence import ControlFence
from odradek.cluster.controller.channels import BrokerChannel, DeliveryFailed, LocalChannel
from odradek.cluster.controller.events import ControlResponse
from odradek.cluster.controller.requests import ControlRequest
from odradek.cluster.log_dir_events import notify_log_dir_event
from odradek.cluster.node import NodeHooks
from odradek.coordination.errors import StoreError
from odradek.coordination.paths import ConfigEntity, EntityType
from odradek.protocol.messages import LeaderAndIsrRequest, StopReplicaRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.control.control_requests import ControlRequestHandler
    from odradek.broker.requests.services import Services
    from odradek.broker.settings.dynamic.broker_settings import BrokerSettings
    from odradek.broker.settings.dynamic.group_configs import GroupConfigs
    from odradek.broker.settings.dynamic.topic_settings import TopicSettings
    from odradek.cluster.acls import ClusterAcls
    from odradek.cluster.node import ClusterNode

logger = logging.getLogger(__name__)


class ClusterEvents:
    """The callbacks of this broker's `ClusterNode`. Called on the broker's loop.

    `node`, the settings, `services` and `control` are set by the server as it starts.
    """

    node: ClusterNode
    broker_settings: BrokerSettings
    group_configs: GroupConfigs
    control: ControlRequestHandler

    def __init__(self, fence: ControlFence, topic_settings: TopicSettings) -> None:
        self._fence = fence
        self._topic_settings = topic_settings
        self.services: Services | None = None

    def hooks(self, on_fatal: Callable[[Exception], None], acls: ClusterAcls | None) -> NodeHooks:
        """The callbacks for the cluster node."""
        return NodeHooks(
            connect=self._connect,
            on_registered=self._registered,
            on_brokers=self._brokers_changed,
            on_config_change=self._config_changed,
            on_fatal=on_fatal,
            acls=acls,
            allows_unclean=lambda topic: (
                self._topic_settings.log_config(topic).unclean_leader_election_enable
            ),
        )

    async def retry_partitions_without_space(self) -> None:
        """Ask the controller to send the partitions again that a full disk could not take."""
        waiting = self.control.without_space
        if not waiting:
            return
        logger.warning("Retrying %d partitions that could not be created on a full disk", len(waiting))
        try:
            await notify_log_dir_event(self.node.store, self.node.broker_id)
        except StoreError as error:
            logger.warning("Cannot ask the controller to retry the partitions yet: %s", error)

    def _connect(self, broker: Broker) -> BrokerChannel:
        if broker.broker_id == self.node.broker_id:
            return LocalChannel(self._apply)
        return _NoChannel(broker)

    async def _apply(self, request: ControlRequest) -> ControlResponse:
        if isinstance(request, LeaderAndIsrRequest):
            for topic in request.topic_states:
                if not self._topic_settings.knows(topic.topic_name):
                    await self._topic_settings.load(self.node.store, topic.topic_name)
            return await self.control.leader_and_isr(request)
        if isinstance(request, StopReplicaRequest):
            for stopped in request.topic_states:
                # A topic created again under the same name has settings of its own.
                if any(state.delete_partition for state in stopped.partition_states):
                    self._topic_settings.forget(stopped.topic_name)
            return await self.control.stop_replica(request)
        return await self.control.update_metadata(request)

    def _registered(self, broker_epoch: int) -> None:
        self._fence.broker_epoch = broker_epoch

    def _brokers_changed(self, brokers: dict[int, Broker]) -> None:
        if self.services is not None:
            self.services.image.set_broker_epochs(
                {broker_id: broker.epoch for broker_id, broker in brokers.items()}
            )

    async def _config_changed(self, entity: ConfigEntity) -> None:
        if entity.type is EntityType.BROKERS:
            await self.broker_settings.load()
        elif entity.name is None:
            return
        elif entity.type is EntityType.GROUPS:
            await self.group_configs.load(entity.name)
        elif entity.type is EntityType.TOPICS:
            await self._topic_config_changed(entity.name)

    async def _topic_config_changed(self, topic: str) -> None:
        await self._topic_settings.load(self.node.store, topic)
        config = self._topic_settings.log_config(topic)
        if self.services is not None:
            for partition in self.services.replicas:
                if partition.topic_partition.topic == topic:
                    partition.log.config = config
        self.node.controller.topic_config_changed(topic)


class _NoChannel:
    """Stands for the connection to another broker, which is not implemented yet."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def send(self, request: ControlRequest) -> ControlResponse:
        raise DeliveryFailed(
            f"requests to other brokers are not implemented: broker {self._broker.broker_id}"
        )

    async def close(self) -> None:
        return None
