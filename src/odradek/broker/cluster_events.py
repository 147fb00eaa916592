"""Applies what the controller and the store report to this broker: control requests, brokers, settings."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.cluster.control_fence import ControlFence
from odradek.cluster.controller.channels import BrokerChannel, LocalChannel
from odradek.cluster.controller.events import ControlResponse
from odradek.cluster.controller.remote_channel import RemoteChannel
from odradek.cluster.controller.requests import ControlRequest
from odradek.cluster.log_dir_events import notify_log_dir_event
from odradek.cluster.membership.brokers import Broker
from odradek.cluster.node import NodeHooks
from odradek.coordination.errors import StoreError
from odradek.coordination.paths import ConfigEntity, EntityType

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.control.control_requests import ControlRequestHandler
    from odradek.broker.requests.services import Services
    from odradek.broker.settings.broker_config import BrokerConfig
    from odradek.broker.settings.dynamic.broker_settings import BrokerSettings
    from odradek.broker.settings.dynamic.group_configs import GroupConfigs
    from odradek.broker.settings.dynamic.topic_settings import TopicSettings
    from odradek.cluster.acls import ClusterAcls
    from odradek.cluster.features import ClusterFeatures
    from odradek.cluster.node import ClusterNode
    from odradek.log.config import LogConfig

logger = logging.getLogger(__name__)


class ClusterEvents:
    """The callbacks of this broker's `ClusterNode`. Called on the broker's loop.

    `node`, the settings, `services` and `control` are set by the server as it starts.
    """

    node: ClusterNode
    broker_settings: BrokerSettings
    group_configs: GroupConfigs
    control: ControlRequestHandler
    features: ClusterFeatures

    def __init__(
        self, fence: ControlFence, topic_settings: TopicSettings, config: Callable[[], BrokerConfig]
    ) -> None:
        self._fence = fence
        self._config = config
        self._topic_settings = topic_settings
        self.services: Services | None = None
        self._brokers: dict[int, Broker] = {}

    def hooks(self, on_fatal: Callable[[Exception], None], acls: ClusterAcls | None) -> NodeHooks:
        """The callbacks for the cluster node."""
        return NodeHooks(
            connect=self._connect,
            on_registered=self._registered,
            on_brokers=self._brokers_changed,
            on_config_change=self._config_changed,
            load_configs=self._load_configs,
            on_fatal=on_fatal,
            acls=acls,
            load_settings=self._load_settings,
            on_controller=self._controller_changed,
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
        config = self._config()
        return RemoteChannel(
            broker,
            config.control_listener,
            str(self.node.broker_id),
            config.controller_socket_timeout_ms / 1000,
        )

    async def _apply(self, request: ControlRequest) -> ControlResponse:
        return await self.control.apply(request)

    async def _load_settings(self, topic: str) -> None:
        """This broker may have no replica of the topic, and never have read its settings."""
        if not self._topic_settings.knows(topic):
            await self._topic_settings.load(self.node.store, topic)

    def _controller_changed(self) -> None:
        if self.services is not None:
            self.services.controller_channel.controller_changed()

    def _registered(self, broker_epoch: int) -> None:
        self._fence.broker_epoch = broker_epoch

    def _brokers_changed(self, brokers: dict[int, Broker]) -> None:
        self.features.brokers_changed(brokers)
        if self.services is not None:
            self._disconnect_from_former(brokers)
            self._brokers = dict(brokers)
            self.services.image.set_broker_epochs(
                {broker_id: broker.epoch for broker_id, broker in brokers.items()}
            )

    def _disconnect_from_former(self, brokers: dict[int, Broker]) -> None:
        """Requests to a broker that has left or registered again must not wait for their deadlines."""
        assert self.services is not None
        for broker_id, former in self._brokers.items():
            if broker_id not in brokers or brokers[broker_id].epoch != former.epoch:
                self.services.connections.forget(broker_id)

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
        self.apply_topic_settings(topic)
        self.node.controller.topic_config_changed(topic)

    async def _load_configs(self) -> None:
        """They were read before the logs were loaded, or in another session."""
        await self.broker_settings.load()
        await self._topic_settings.load_all(self.node.store)
        await self.group_configs.load_all()
        self.apply_topic_settings()

    def apply_topic_settings(self, topic: str | None = None) -> None:
        """Put the settings of a topic, or of all, into the logs; also into those that are not hosted yet."""
        if self.services is None:
            return
        configs: dict[str, LogConfig] = {}
        for log in self.services.replicas.logs.logs.values():
            name = log.partition.topic
            if topic is None or name == topic:
                if name not in configs:
                    configs[name] = self._topic_settings.log_config(name)
                log.config = configs[name]
