"""Builds the components of a broker: some at once, the others when its logs are loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from odradek.broker.background.housekeeping import Housekeeping
from odradek.broker.background.log_cleaning import LogCleaning
from odradek.broker.background.log_moves import LogMoves
from odradek.broker.cluster_events import ClusterEvents
from odradek.broker.control.control_requests import ControlRequestHandler
from odradek.broker.environment import BrokerEnvironment
from odradek.broker.listeners import Listeners
from odradek.broker.loading import coordinate_when_needed
from odradek.broker.replication_parts import replicate
from odradek.broker.requests.services import Services
from odradek.broker.security.authorizer import configured_authorizer
from odradek.broker.service_parts import make_services
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.dynamic.broker_settings import BrokerSettings
from odradek.broker.settings.dynamic.group_configs import GroupConfigs
from odradek.broker.settings.dynamic.topic_settings import TopicSettings
from odradek.cluster.acls import ClusterAcls
from odradek.cluster.control_fence import ControlFence
from odradek.cluster.controller.active_controller import ActiveControllerSettings
from odradek.cluster.controller.controller import ControllerSettings
from odradek.cluster.features import ClusterFeatures
from odradek.cluster.node import ClusterNode, NodeHooks, NodeSettings
from odradek.common.clock import Clock
from odradek.coordination import paths
from odradek.coordination.store import Store
from odradek.log.checkpoints import MetaProperties
from odradek.log.directories.log_dir_errors import make_directory
from odradek.log.directories.log_directory import recorded_properties
from odradek.log.directories.log_manager import LogManager
from odradek.log.files.file_system import FileSystem
from odradek.replication.replica_manager import ReplicaManager

if TYPE_CHECKING:
    from odradek.broker.metrics_listener import MetricsListener

Result = TypeVar("Result")


@dataclass(slots=True, eq=False, repr=False)
class LogComponents:
    """The components that need the logs. Owned by the server, which starts and stops them."""

    services: Services
    control: ControlRequestHandler
    cleaning: LogCleaning
    moves: LogMoves
    housekeeping: Housekeeping


class Components:
    """The components of one broker. Owned by its server, on the loop.

    `logs` and `loaded` are None until the logs are loaded; `config` changes with dynamic settings.
    `pool` has the threads for clients' requests and for the log directories as a whole. `control_pool` has
    as many for control requests and replication: a fail-over waits for no read of a client.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        files: FileSystem | None,
        environment: BrokerEnvironment,
        on_fatal: Callable[[Exception], None],
    ) -> None:
        self.config = config
        self.clock = clock
        self._files = files
        self.pool = environment.make_threads(config.num_io_threads)
        self.control_pool = environment.make_threads(config.num_io_threads)
        self.listeners = Listeners(config, environment.make_listener)
        self._topic_settings = TopicSettings(self._current_config)
        self._authorizer = configured_authorizer(config)
        self._acls = None if self._authorizer is None else ClusterAcls(self._store, self._authorizer)
        self._fence = ControlFence()
        self._events = ClusterEvents(self._fence, self._topic_settings, self._current_config)
        self.node = make_node(config, self._events.hooks(on_fatal, self._acls), clock, environment)
        self._broker_settings = BrokerSettings(
            self._store, lambda: self.node.broker_id, self._current_config, self._apply_config
        )
        self._group_configs = GroupConfigs(self._store, self._current_config)
        self.features = ClusterFeatures(self._store)
        self._events.node = self.node
        self._events.features = self.features
        self._events.broker_settings = self._broker_settings
        self._events.group_configs = self._group_configs
        self.logs: LogManager | None = None
        self.loaded: LogComponents | None = None

    def _current_config(self) -> BrokerConfig:
        return self.config

    def _store(self) -> Store:
        return self.node.store

    @property
    def has_embedded_store(self) -> bool:
        """Whether the store is a file of this machine."""
        return self.config.coordination_url.startswith("sqlite:")

    async def in_pool(self, step: Callable[[], Result]) -> Result:
        """Run a function that may block in a thread of the pool, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, step)

    async def in_control_pool(self, step: Callable[[], Result]) -> Result:
        """The same in a thread of the control pool."""
        return await asyncio.get_running_loop().run_in_executor(self.control_pool, step)

    async def recorded_properties(self) -> MetaProperties | None:
        """Create the missing log directories, and read broker and cluster id from the others."""
        for path in self.config.data_dirs:
            make_directory(path)
        return await self.in_pool(lambda: recorded_properties(self.config.data_dirs, self._files))

    async def load_settings(self) -> None:
        """Read the dynamic settings of this broker, of topics and of groups from the store."""
        await self._broker_settings.load()
        await self._topic_settings.load_all(self.node.store)
        await self._group_configs.load_all()

    async def load_logs(self) -> LogManager:
        """Open every log, with recovery where it is needed."""
        logs = self.logs = LogManager(
            self.config.data_dirs,
            broker_id=self.node.broker_id,
            cluster_id=self.node.cluster_id,
            config=self.config.log_manager,
            files=self._files,
        )
        now_ms = self.clock.now_ms()
        await self.in_pool(lambda: logs.start(now_ms, self._topic_settings.log_config))
        if self.has_embedded_store and (logs.logs or logs.report.corrupted):
            await self._adopt_if_store_is_lost(logs)
        return logs

    async def stop_logs(self) -> None:
        """Close the logs and mark them clean, then end the threads."""
        logs = self.logs
        if logs is not None:
            await self.in_pool(lambda: logs.stop(self.clock.now_ms(), self.node.broker_epoch))
        self.stop_threads()

    def stop_threads(self) -> None:
        """End the threads, when what they do is done."""
        self.control_pool.shutdown()
        self.pool.shutdown()

    async def _adopt_if_store_is_lost(self, logs: LogManager) -> None:
        if await self.node.store.children(paths.TOPICS):
            return
        from odradek.broker.lost_store import adopt_logs  # noqa: PLC0415 (rare: a start imports what it needs)

        await adopt_logs(self.node.store, logs, self.node.broker_id, self.config, self._topic_settings)

    def make_log_components(self, logs: LogManager) -> LogComponents:
        """Build what needs the logs. Called on the broker's loop."""
        replicas = ReplicaManager(self.node.broker_id, logs, lambda partition: None)
        cleaning = LogCleaning(logs, self.config.cleaner, self.clock, replicas.disk_failed)
        moves = self._make_log_moves(replicas, cleaning)
        services = make_services(
            self._current_config,
            self.node,
            self.clock,
            self.pool,
            replicas=replicas,
            moves=moves,
            topic_settings=self._topic_settings,
            broker_settings=self._broker_settings,
            group_configs=self._group_configs,
            features=self.features,
            request_limit=self.listeners.request_limit,
            authorizer=self._authorizer,
            acls=self._acls,
        )
        replicas.on_progress = services.on_progress  # called for every append: no method in between
        coordinate_when_needed(services)
        replicate(
            services,
            services.connections,
            services.controller_channel.send,
            lambda: self.node.broker_epoch,
            cleaning,
            self.in_control_pool,
        )
        control = services.control = ControlRequestHandler(
            self._fence,
            replicas,
            services.image,
            self._topic_settings,
            self._store,
            self.clock,
            self.in_control_pool,
            cleaning,
            moves,
            services.state_changes.notify,
        )
        self._events.services = services
        self._events.control = control
        housekeeping = Housekeeping(
            replicas,
            self.config,
            self.clock,
            self.pool,
            services.flusher,
            self._events.retry_partitions_without_space,
        )
        self.loaded = LogComponents(services, control, cleaning, moves, housekeeping)
        return self.loaded

    def _make_log_moves(self, replicas: ReplicaManager, cleaning: LogCleaning) -> LogMoves:
        config = self.config
        return LogMoves(
            replicas,
            cleaning,
            self.clock,
            self.in_pool,
            max_parallel=config.num_replica_alter_log_dirs_threads or len(config.data_dirs),
            max_bytes_per_second=lambda: self.config.replica_alter_log_dirs_io_max_bytes_per_second,
        )

    def make_metrics_listener(self, services: Services) -> MetricsListener:
        """The listener for scrapers of metrics, which is imported only where one is configured."""
        from odradek.broker.broker_metrics import broker_registry  # noqa: PLC0415
        from odradek.broker.metrics_listener import MetricsListener  # noqa: PLC0415

        return MetricsListener(broker_registry(services, self.listeners, self.node), self.in_pool)

    def _apply_config(self, config: BrokerConfig) -> None:
        """Apply changed broker settings; topics that do not override them change with them."""
        self.config = config
        self.pool.resize(config.num_io_threads)
        self.control_pool.resize(config.num_io_threads)
        self.listeners.apply(config)
        if self.logs is not None:
            self.logs.config = config.log_manager
        if self.loaded is not None:
            self.loaded.cleaning.apply(config.cleaner)
        self._events.apply_topic_settings()


def make_node(
    config: BrokerConfig, hooks: NodeHooks, clock: Clock, environment: BrokerEnvironment
) -> ClusterNode:
    """The broker's member of the cluster: its session at the store, and its controller."""
    settings = NodeSettings(
        broker_id=config.given_broker_id,
        reserved_broker_max_id=config.reserved_broker_max_id,
        rack=config.broker_rack,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms or config.zookeeper_session_timeout_ms,
        controller=ControllerSettings(
            inter_broker_listener=config.inter_broker_listener,
            is_auto_leader_rebalance_enabled=config.auto_leader_rebalance_enable,
            leader_imbalance_check_interval_s=config.leader_imbalance_check_interval_seconds,
            term=ActiveControllerSettings(
                config.delete_topic_enable, config.leader_imbalance_per_broker_percentage
            ),
        ),
    )
    return ClusterNode(lambda: environment.open_store(config), settings, hooks, clock)
