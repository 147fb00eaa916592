"""The order in which a broker starts and stops.

| start | stop |
| --- | --- |
| session at the store: cluster id, broker id | the controller moves our leaders to other brokers |
| settings, then the logs (recovery) | no new connections; background tasks stop, then connections close |
| listeners are bound: clients that connect now wait | the session ends, and with it the registration |
| registered; connections are accepted, only the controller is served | logs are closed and marked clean |
| controller elected, metadata received | |
| clients are served: the broker is ready | |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from odradek.broker.background.housekeeping import Housekeeping
from odradek.broker.background.log_cleaning import LogCleaning
from odradek.broker.background.log_moves import LogMoves
from odradek.broker.cluster_events import ClusterEvents
from odradek.broker.components import make_log_moves, make_node, make_services
from odradek.broker.control.control_requests import ControlRequestHandler
from odradek.broker.control.controlled_shutdown import shut_down_controlled
from odradek.broker.environment import BrokerEnvironment
from odradek.broker.listeners import Listeners
from odradek.broker.loading import coordinate_when_needed, load_the_rest
from odradek.broker.replication_parts import replicate
from odradek.broker.requests.services import Services
from odradek.broker.security.authorizer import configured_authorizer
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.dynamic.broker_settings import BrokerSettings
from odradek.broker.settings.dynamic.group_configs import GroupConfigs
from odradek.broker.settings.dynamic.topic_settings import TopicSettings
from odradek.cluster.acls import ClusterAcls
from odradek.cluster.control_fence import ControlFence
from odradek.cluster.features import ClusterFeatures
from odradek.cluster.node import ClusterNode
from odradek.common.clock import Clock, SystemClock
from odradek.coordination import paths
from odradek.log.directories.log_dir_errors import make_directory
from odradek.log.directories.log_directory import recorded_properties
from odradek.log.directories.log_manager import LogManager
from odradek.log.files.file_system import FileSystem
from odradek.replication.partition import Partition
from odradek.replication.replica_manager import ReplicaManager

if TYPE_CHECKING:
    from odradek.broker.metrics_listener import MetricsListener

logger = logging.getLogger(__name__)
Result = TypeVar("Result")


class BrokerServer:
    """One broker. Lives on one event loop, which calls `start`, then `stop`."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        files: FileSystem | None = None,
        environment: BrokerEnvironment | None = None,
        on_fatal: Callable[[Exception], None],
    ) -> None:
        """`on_fatal` is called with the reason when the broker cannot go on: its owner must stop it."""
        self.config = config
        self._files = files
        environment = environment or BrokerEnvironment()
        self._clock = clock or SystemClock()
        self._topic_settings = TopicSettings(self._current_config)
        self._pool = environment.make_threads(config.num_io_threads)
        self._fence = ControlFence()
        self._listeners = Listeners(config, environment.make_listener)
        self._authorizer = configured_authorizer(config)
        self._acls = (
            None if self._authorizer is None else ClusterAcls(lambda: self._node.store, self._authorizer)
        )
        self._events = ClusterEvents(self._fence, self._topic_settings, self._current_config)
        self._node = make_node(config, self._events.hooks(on_fatal, self._acls), self._clock, environment)
        self._broker_settings = BrokerSettings(
            lambda: self._node.store,
            lambda: self._node.broker_id,
            self._current_config,
            self._apply_config,
        )
        self._group_configs = GroupConfigs(lambda: self._node.store, self._current_config)
        self._features = ClusterFeatures(lambda: self._node.store)
        self._events.node = self._node
        self._events.features = self._features
        self._events.broker_settings = self._broker_settings
        self._events.group_configs = self._group_configs
        self._services: Services | None = None
        self._control: ControlRequestHandler | None = None
        self._housekeeping: Housekeeping | None = None
        self._cleaning: LogCleaning | None = None
        self._moves: LogMoves | None = None
        self.metrics: MetricsListener | None = None
        self._logs: LogManager | None = None

    def _current_config(self) -> BrokerConfig:
        return self.config

    @property
    def services(self) -> Services:
        """What the handlers work with; only after `start`."""
        assert self._services is not None, "not started"
        return self._services

    @property
    def logs(self) -> LogManager | None:
        """The logs, once they are being loaded."""
        return self._logs

    @property
    def cleaning(self) -> LogCleaning:
        """The log cleaner; only after `start`."""
        assert self._cleaning is not None, "not started"
        return self._cleaning

    @property
    def housekeeping(self) -> Housekeeping:
        """The periodic tasks; only after `start`."""
        assert self._housekeeping is not None, "not started"
        return self._housekeeping

    @property
    def node(self) -> ClusterNode:
        """This broker as a member of the cluster."""
        return self._node

    def addresses(self) -> list[str]:
        """`host:port` of every listener, with the actual port where 0 was configured."""
        return [f"{listener.host}:{listener.port}" for listener in self._listeners.advertised()]

    async def start(self) -> None:
        """Return when clients are served and the metadata lists this broker."""
        try:
            await self._start()
        except BaseException:
            await self._abandon()
            raise

    async def _abandon(self) -> None:
        """Release everything after a failed start, so that the next start can have it."""
        self._listeners.close()
        if self.metrics is not None:
            self.metrics.close()
        await self._node.leave()
        # A thread may still be loading logs: they are released after it has finished.
        self._pool.shutdown()
        if self._logs is not None:
            self._logs.abandon()

    async def _start(self) -> None:
        for path in self.config.data_dirs:
            make_directory(path)
        recorded = await self._in_pool(lambda: recorded_properties(self.config.data_dirs, self._files))
        # An empty ZooKeeper is more likely the wrong one than the replacement of a lost one.
        has_embedded_store = self.config.coordination_url.startswith("sqlite:")
        await self._node.connect(
            None if recorded is None else recorded.broker_id,
            recorded.cluster_id if recorded is not None and has_embedded_store else None,
        )
        await self._broker_settings.load()
        await self._topic_settings.load_all(self._node.store)
        await self._group_configs.load_all()
        self._logs = LogManager(
            self.config.data_dirs,
            broker_id=self._node.broker_id,
            cluster_id=self._node.cluster_id,
            config=self.config.log_manager,
            files=self._files,
        )
        now_ms = self._clock.now_ms()
        logs = self._logs
        await self._in_pool(lambda: logs.start(now_ms, self._topic_settings.log_config))
        if has_embedded_store:
            await self._adopt_logs(logs)
        replicas = ReplicaManager(self._node.broker_id, logs, self._on_progress)
        self._cleaning = LogCleaning(logs, self.config.cleaner, self._clock, replicas.disk_failed)
        self._moves = make_log_moves(
            self._current_config, replicas, self._cleaning, self._clock, self._in_pool
        )
        self._services = make_services(
            self._current_config,
            self._node,
            self._clock,
            self._pool,
            replicas=replicas,
            moves=self._moves,
            topic_settings=self._topic_settings,
            broker_settings=self._broker_settings,
            group_configs=self._group_configs,
            request_limit=self._listeners.request_limit,
            authorizer=self._authorizer,
            acls=self._acls,
        )
        replicas.on_progress = self._services.on_progress  # called for every append: no method in between
        self._services.store = lambda: self._node.store
        self._services.features = self._features
        coordinate_when_needed(self._services)
        replicate(
            self._services,
            self._services.connections,
            self._services.controller_channel.send,
            lambda: self._node.broker_epoch,
            self._cleaning,
        )
        self._control = ControlRequestHandler(
            self._fence,
            replicas,
            self._services.image,
            self._topic_settings,
            lambda: self._node.store,
            self._clock,
            self._in_pool,
            self._cleaning,
            self._moves,
            self._services.state_changes.notify,
        )
        self._events.services = self._services
        self._events.control = self._services.control = self._control
        self._listeners.open(self._services)
        await self._start_metrics()
        await self._node.join(tuple(self._listeners.advertised()))
        await self._features.finalize()
        # The controller may be another broker: its requests come by these connections.
        self._listeners.start_accepting()
        await self._services.state_changes.wait_until(self._knows_the_cluster)
        # Not before: librdkafka drops all addresses when the metadata has no brokers, and does not ask again.
        self._listeners.let_clients_in()
        self._housekeeping = Housekeeping(
            replicas,
            self.config,
            self._clock,
            self._pool,
            self._services.flusher,
            self._events.retry_partitions_without_space,
        )
        self._housekeeping.start()
        self._cleaning.start()
        await self._moves.start()

    def _knows_the_cluster(self) -> bool:
        """Whether the controller has sent the metadata, with this broker, and the replicas to serve."""
        assert self._control is not None
        image, broker_id = self.services.image, self._node.broker_id
        if broker_id not in image.brokers:
            return False
        # The controller of Kafka sends no LeaderAndIsr request to a broker without replicas.
        return self._control.has_replicas_assigned or not any(
            broker_id in partition.replicas
            for topic in image.topics.values()
            for partition in topic.partitions.values()
        )

    async def _adopt_logs(self, logs: LogManager) -> None:
        if not (logs.logs or logs.report.corrupted) or await self._node.store.children(paths.TOPICS):
            return
        from odradek.broker.lost_store import adopt_logs  # noqa: PLC0415 (rare: a start imports what it needs)

        adopted = await adopt_logs(self._node.store, logs, self._node.broker_id, self.config)
        for topic in adopted:
            await self._topic_settings.load(self._node.store, topic)
        for log in logs.logs.values():
            if log.partition.topic in adopted:
                log.config = self._topic_settings.log_config(log.partition.topic)

    async def load_the_rest(self) -> None:
        """Load what was not needed to be ready, so that no first request waits for it."""
        await load_the_rest(self.services)

    async def _start_metrics(self) -> None:
        endpoint = self.config.metrics_endpoint
        if endpoint is not None:
            # Imported only where a metrics listener is configured.
            from odradek.broker.broker_metrics import broker_registry  # noqa: PLC0415
            from odradek.broker.metrics_listener import MetricsListener  # noqa: PLC0415

            self.metrics = MetricsListener(
                broker_registry(self.services, self._listeners, self._node), self._in_pool
            )
            await self.metrics.start(endpoint.host, endpoint.port)
            logger.info("metrics: http://%s:%d/metrics", endpoint.host, self.metrics.port)

    async def stop(self) -> None:
        """Stop in order: no acknowledged record is lost, and the next start needs no recovery."""
        if self._services is not None and self.config.controlled_shutdown_enable:
            await shut_down_controlled(self._node, self._services.controller_channel, self.config)
        self._listeners.stop_accepting()
        if self.metrics is not None:
            self.metrics.close()
        if self._moves is not None:
            await self._moves.stop()
        if self._cleaning is not None:
            await self._cleaning.stop()
        if self._housekeeping is not None:
            await self._housekeeping.stop()
        self._listeners.close()
        if self._services is not None:
            self._services.close_coordinators()
            await self._services.replicas.stop_replicating()
        self._features.stop()
        await self._node.leave()
        if self._services is not None:
            self._services.connections.close()
        if self._control is not None:
            await self._control.close()
        if self._services is not None:
            await self._services.flusher.stop()
        logs = self._logs
        if logs is not None:
            await self._in_pool(lambda: logs.stop(self._clock.now_ms(), self._node.broker_epoch))
        self._pool.shutdown()

    async def _in_pool(self, step: Callable[[], Result]) -> Result:
        """Run a function that may block in a thread of the pool, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, step)

    def _on_progress(self, partition: Partition) -> None:
        self.services.on_progress(partition)

    def _apply_config(self, config: BrokerConfig) -> None:
        """Apply changed broker settings; topics that do not override them change with them."""
        self.config = config
        self._pool.resize(config.num_io_threads)
        self._listeners.apply(config)
        if self._cleaning is not None:
            self._cleaning.apply(config.cleaner)
        if self._logs is not None:
            self._logs.config = config.log_manager
        if self._services is not None:
            for partition in self._services.replicas:
                partition.log.config = self._topic_settings.log_config(partition.topic_partition.topic)
