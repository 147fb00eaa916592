"""A broker from start to stop, in order.

| start | stop |
| --- | --- |
| a session at the store: cluster id, broker id | no new connections |
| settings of topics, then the logs (recovery) | chores end, then every connection |
| listeners bound: whoever comes has to wait | the session ends, and with it the registration |
| registered, controller elected, metadata known | logs closed, clean mark |
| connections accepted: ready | |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from odradek.broker.background.housekeeping import Housekeeping
from odradek.broker.background.io_threads import IoThreads
from odradek.broker.background.log_cleaning import LogCleaning
from odradek.broker.background.log_moves import LogMoves
from odradek.broker.control.control_requests import ControlRequestHandler
from odradek.broker.listeners import Listeners
from odradek.broker.loading import coordinate_groups_when_needed, load_the_rest
from odradek.broker.requests.fetch_sessions import FetchSessions
from odradek.broker.requests.purgatory import CommitPurgatory, Purgatory
from odradek.broker.requests.services import Services
from odradek.broker.security.authorizer import configured_authorizer
from odradek.broker.settings.alter import check_topic
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.dynamic.broker_settings import BrokerSettings
from odradek.broker.settings.dynamic.group_configs import GroupConfigs
from odradek.broker.settings.dynamic.topic_settings import TopicSettings
from odradek.cluster.acls import ClusterAcls
from odradek.cluster.brokers import Broker
from odradek.cluster.control_fence import ControlFence
from odradek.cluster.controller.active_controller import ActiveControllerSettings
from odradek.cluster.controller.channels import BrokerChannel, DeliveryFailed, LocalChannel
from odradek.cluster.controller.controller import ControllerSettings
from odradek.cluster.controller.events import ControlResponse
from odradek.cluster.controller.requests import ControlRequest
from odradek.cluster.log_dir_events import note_log_dir_event
from odradek.cluster.metadata import MetadataImage
from odradek.cluster.node import ClusterNode, NodeHooks, NodeSettings
from odradek.cluster.placement import BrokerLocation
from odradek.cluster.topics import TopicAdmin, TopicDefaults
from odradek.common.clock import Clock, SystemClock
from odradek.coordination import paths
from odradek.coordination.errors import StoreError
from odradek.coordination.paths import ConfigEntity, EntityType
from odradek.coordination.store import Store
from odradek.coordination.urls import open_store
from odradek.log.directories.log_dir_errors import make_directory
from odradek.log.directories.log_directory import recorded_properties
from odradek.log.directories.log_manager import LogManager
from odradek.log.files.file_system import FileSystem
from odradek.protocol.messages import LeaderAndIsrRequest, StopReplicaRequest
from odradek.replication.partition import Partition
from odradek.replication.replica_manager import ReplicaManager
from odradek.transactions.producer_ids import ProducerIds

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
        on_fatal: Callable[[Exception], None],
    ) -> None:
        """`on_fatal` is called with the reason when the broker cannot go on: its owner must stop it."""
        self.config = config
        self._files = files
        self._clock = clock or SystemClock()
        self._on_fatal = on_fatal
        self._topic_settings = TopicSettings(lambda: self.config)
        self._pool = IoThreads(config.num_io_threads)
        self._fence = ControlFence()
        self._listeners = Listeners(config)
        self._authorizer = configured_authorizer(config)
        self._acls = (
            None if self._authorizer is None else ClusterAcls(lambda: self._node.store, self._authorizer)
        )
        self._node = self._make_node()
        self._broker_settings = BrokerSettings(
            lambda: self._node.store, lambda: self._node.broker_id, lambda: self.config, self._apply_config
        )
        self._group_configs = GroupConfigs(lambda: self._node.store, lambda: self.config)
        self._services: Services | None = None
        self._obedience: ControlRequestHandler | None = None
        self._housekeeping: Housekeeping | None = None
        self._cleaning: LogCleaning | None = None
        self._moves: LogMoves | None = None
        self.metrics: MetricsListener | None = None
        self._logs: LogManager | None = None

    @property
    def services(self) -> Services:
        """What the handlers work with; only after `start`."""
        assert self._services is not None, "not started"
        return self._services

    @property
    def cleaning(self) -> LogCleaning:
        """The log cleaner; only after `start`."""
        assert self._cleaning is not None, "not started"
        return self._cleaning

    @property
    def housekeeping(self) -> Housekeeping:
        """What is done by the clock; only after `start`."""
        assert self._housekeeping is not None, "not started"
        return self._housekeeping

    @property
    def node(self) -> ClusterNode:
        """This broker's place in the cluster."""
        return self._node

    def addresses(self) -> list[str]:
        """`host:port` of every listener, with the port that was picked where 0 was asked for."""
        return [f"{listener.host}:{listener.port}" for listener in self._listeners.advertised()]

    async def start(self) -> None:
        """Return when clients are served and told so by the metadata."""
        try:
            await self._start()
        except BaseException:
            await self._abandon()
            raise

    async def _abandon(self) -> None:
        """The start failed: let go of whatever was taken, so that the next one can have it."""
        self._listeners.close()
        if self.metrics is not None:
            self.metrics.close()
        await self._node.leave()
        # A thread may still be loading logs: nobody else may have them before it is done.
        self._pool.shutdown()
        if self._logs is not None:
            self._logs.abandon()

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        for path in self.config.data_dirs:
            make_directory(path)
        recorded = await self._in_pool(lambda: recorded_properties(self.config.data_dirs, self._files))
        # A new store at ZooKeeper is more likely the wrong one than one that takes the place of a lost one.
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
        self._moves = self._make_moves(replicas, self._cleaning)
        self._services = self._make_services(loop, replicas, self._moves)
        replicas.on_progress = self._services.on_progress  # without the step between, for every append
        coordinate_groups_when_needed(self._services)
        self._obedience = ControlRequestHandler(
            self._fence,
            replicas,
            self._services.image,
            self._topic_settings.log_config,
            self._clock,
            self._in_pool,
            self._cleaning,
            self._moves,
            self._services.state_changes.notify,
        )
        self._listeners.open(self._services)
        await self._tell_metrics()
        await self._node.join(tuple(self._listeners.advertised()))
        image = self._services.image
        await self._services.state_changes.wait_until(lambda: self._node.broker_id in image.brokers)
        # Not before: told of a cluster without brokers, librdkafka forgets all addresses and asks no more.
        self._listeners.start_accepting()
        self._housekeeping = Housekeeping(
            replicas,
            self.config,
            self._clock,
            self._pool,
            self._services.flusher,
            self._host_what_found_no_room,
        )
        self._housekeeping.start()
        self._cleaning.start()
        await self._moves.start()

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
        """Load what it could be ready without, so that nobody's first request has to wait for it."""
        await load_the_rest(self.services)

    async def _tell_metrics(self) -> None:
        endpoint = self.config.metrics_endpoint
        if endpoint is not None:
            # Only for those who want to be told.
            from odradek.broker.broker_metrics import broker_registry  # noqa: PLC0415
            from odradek.broker.metrics_listener import MetricsListener  # noqa: PLC0415

            self.metrics = MetricsListener(broker_registry(self.services, self._listeners), self._in_pool)
            await self.metrics.start(endpoint.host, endpoint.port)
            logger.info("metrics: http://%s:%d/metrics", endpoint.host, self.metrics.port)

    async def stop(self) -> None:
        """Leave in order: nothing that was acknowledged is lost, and the next start needs no recovery."""
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
            self._services.close_groups()
        await self._node.leave()
        if self._obedience is not None:
            await self._obedience.end()
        if self._services is not None:
            await self._services.flusher.stop()
        logs = self._logs
        if logs is not None:
            await self._in_pool(lambda: logs.stop(self._clock.now_ms(), self._node.broker_epoch))
        self._pool.shutdown()

    async def _in_pool(self, step: Callable[[], Result]) -> Result:
        """Make a step that may block, in a thread; what it answers."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, step)

    # Putting it together

    def _make_node(self) -> ClusterNode:
        config = self.config
        timeout_ms = config.zookeeper_session_timeout_ms

        async def open_session() -> Store:
            return await open_store(
                config.coordination_url,
                session_timeout_ms=timeout_ms,
                connection_timeout_ms=config.zookeeper_connection_timeout_ms,
            )

        settings = NodeSettings(
            broker_id=config.given_broker_id,
            reserved_broker_max_id=config.reserved_broker_max_id,
            rack=config.broker_rack,
            session_timeout_ms=timeout_ms,
            controller=ControllerSettings(
                inter_broker_listener=config.inter_broker_listener,
                is_auto_leader_rebalance_enabled=config.auto_leader_rebalance_enable,
                leader_imbalance_check_interval_s=config.leader_imbalance_check_interval_seconds,
                term=ActiveControllerSettings(
                    config.delete_topic_enable, config.leader_imbalance_per_broker_percentage
                ),
            ),
        )
        hooks = NodeHooks(
            connect=self._connect,
            on_registered=self._registered_with,
            on_brokers=self._brokers_changed,
            on_config_change=self._config_changed,
            on_fatal=self._on_fatal,
            acls=self._acls,
            allows_unclean=lambda topic: (
                self._topic_settings.log_config(topic).unclean_leader_election_enable
            ),
        )
        return ClusterNode(open_session, settings, hooks, self._clock)

    def _make_moves(self, replicas: ReplicaManager, cleaning: LogCleaning) -> LogMoves:
        config = self.config
        return LogMoves(
            replicas,
            cleaning,
            self._clock,
            self._in_pool,
            max_parallel=config.num_replica_alter_log_dirs_threads or len(config.data_dirs),
            max_bytes_per_second=lambda: self.config.replica_alter_log_dirs_io_max_bytes_per_second,
        )

    def _make_services(
        self, loop: asyncio.AbstractEventLoop, replicas: ReplicaManager, moves: LogMoves
    ) -> Services:
        config = self.config
        image = MetadataImage(self._node.cluster_id)
        return Services(
            broker_id=self._node.broker_id,
            cluster_id=self._node.cluster_id,
            clock=self._clock,
            loop=loop,
            pool=self._pool,
            replicas=replicas,
            fetch_sessions=FetchSessions(config.max_incremental_fetch_session_cache_slots),
            waiting_produces=CommitPurgatory(loop),
            waiting_flushes=CommitPurgatory(loop, until_flushed=True),
            waiting_fetches=Purgatory(loop),
            image=image,
            producer_ids=ProducerIds(lambda: self._node.store, self._node.broker_id),
            config=lambda: self.config,
            topic_settings=self._topic_settings,
            broker_settings=self._broker_settings,
            group_configs=self._group_configs,
            topics=TopicAdmin(
                lambda: self._node.store,
                lambda: [BrokerLocation(broker.broker_id, broker.rack) for broker in image.brokers.values()],
                defaults=TopicDefaults(
                    config.num_partitions, config.default_replication_factor, config.delete_topic_enable
                ),
                check_configs=self._check_topic_configs,
            ),
            moves=moves,
            gate=self._listeners.gate,
            authorizer=self._authorizer,
            acls=self._acls,
        )

    def _check_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        check_topic(self.config, configs)

    def _on_progress(self, partition: Partition) -> None:
        self.services.on_progress(partition)

    # What the cluster tells us

    def _connect(self, broker: Broker) -> BrokerChannel:
        if broker.broker_id == self._node.broker_id:
            return LocalChannel(self._obey)
        return _NoChannel(broker)

    async def _obey(self, request: ControlRequest) -> ControlResponse:
        obedience = self._obedience
        assert obedience is not None
        if isinstance(request, LeaderAndIsrRequest):
            for topic in request.topic_states:
                if not self._topic_settings.knows(topic.topic_name):
                    await self._topic_settings.load(self._node.store, topic.topic_name)
            return await obedience.leader_and_isr(request)
        if isinstance(request, StopReplicaRequest):
            for stopped in request.topic_states:
                # A topic made anew under the name has settings of its own.
                if any(told.delete_partition for told in stopped.partition_states):
                    self._topic_settings.forget(stopped.topic_name)
            return await obedience.stop_replica(request)
        return await obedience.update_metadata(request)

    async def _host_what_found_no_room(self) -> None:
        """There is room: have the controller name the partitions again that could not be made."""
        assert self._obedience is not None
        waiting = self._obedience.without_room
        if not waiting:
            return
        logger.warning("%d partitions found no room on a full disk and are tried again", len(waiting))
        try:
            await note_log_dir_event(self._node.store, self._node.broker_id)
        except StoreError as error:
            logger.warning("the controller cannot be told yet that there is room: %s", error)

    def _registered_with(self, broker_epoch: int) -> None:
        self._fence.broker_epoch = broker_epoch

    def _brokers_changed(self, brokers: dict[int, Broker]) -> None:
        if self._services is not None:
            self._services.image.learn_broker_epochs(
                {broker_id: broker.epoch for broker_id, broker in brokers.items()}
            )

    async def _config_changed(self, entity: ConfigEntity) -> None:
        if entity.type is EntityType.BROKERS:
            await self._broker_settings.load()
        if entity.type is EntityType.GROUPS and entity.name is not None:
            await self._group_configs.load(entity.name)
        if entity.type is not EntityType.TOPICS or entity.name is None:
            return
        topic = entity.name
        await self._topic_settings.load(self._node.store, topic)
        config = self._topic_settings.log_config(topic)
        for partition in self.services.replicas:
            if partition.topic_partition.topic == topic:
                partition.log.config = config
        self._node.controller.topic_config_changed(topic)

    def _apply_config(self, config: BrokerConfig) -> None:
        """Settings have changed for this broker; the ones of topics that leave them to it change, too."""
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


class _NoChannel:
    """The way to another broker, which replication between brokers will build."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def send(self, request: ControlRequest) -> ControlResponse:
        raise DeliveryFailed(f"there is no way to broker {self._broker.broker_id} yet")

    async def close(self) -> None:
        return None
