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

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.broker.components import Components, LogComponents
from odradek.broker.control.controlled_shutdown import shut_down_controlled
from odradek.broker.environment import BrokerEnvironment
from odradek.broker.loading import load_the_rest
from odradek.common.clock import Clock, SystemClock

if TYPE_CHECKING:
    from odradek.broker.background.housekeeping import Housekeeping
    from odradek.broker.background.log_cleaning import LogCleaning
    from odradek.broker.metrics_listener import MetricsListener
    from odradek.broker.requests.services import Services
    from odradek.broker.settings.broker_config import BrokerConfig
    from odradek.cluster.node import ClusterNode
    from odradek.log.directories.log_manager import LogManager
    from odradek.log.files.file_system import FileSystem

logger = logging.getLogger(__name__)


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
        self._components = Components(
            config, clock or SystemClock(), files, environment or BrokerEnvironment(), on_fatal
        )
        self.metrics: MetricsListener | None = None

    @property
    def config(self) -> BrokerConfig:
        """The configuration as it is now; dynamic settings change it."""
        return self._components.config

    @property
    def logs(self) -> LogManager | None:
        """The logs, once they are being loaded."""
        return self._components.logs

    @property
    def node(self) -> ClusterNode:
        """This broker as a member of the cluster."""
        return self._components.node

    def _loaded(self) -> LogComponents:
        assert self._components.loaded is not None, "not started"
        return self._components.loaded

    @property
    def services(self) -> Services:
        """What the handlers work with; only after `start`."""
        return self._loaded().services

    @property
    def cleaning(self) -> LogCleaning:
        """The log cleaner; only after `start`."""
        return self._loaded().cleaning

    @property
    def housekeeping(self) -> Housekeeping:
        """The periodic tasks; only after `start`."""
        return self._loaded().housekeeping

    def addresses(self) -> list[str]:
        """`host:port` of every listener, with the actual port where 0 was configured."""
        return [f"{listener.host}:{listener.port}" for listener in self._components.listeners.advertised()]

    async def start(self) -> None:
        """Return when clients are served and the metadata lists this broker."""
        try:
            await self._start()
        except BaseException:
            await self._abandon()
            raise

    async def _start(self) -> None:
        components = self._components
        node, listeners = components.node, components.listeners
        recorded = await components.recorded_properties()
        # An empty ZooKeeper is more likely the wrong one than the replacement of a lost one.
        await node.connect(
            None if recorded is None else recorded.broker_id,
            recorded.cluster_id if recorded is not None and components.has_embedded_store else None,
        )
        await components.load_settings()
        loaded = components.make_log_components(await components.load_logs())
        listeners.open(loaded.services)
        await self._start_metrics(loaded.services)
        await node.join(tuple(listeners.advertised()))
        await node.repeat_when_lost(components.features.finalize)
        # The controller may be another broker: its requests come by these connections.
        listeners.start_accepting()
        await loaded.services.state_changes.wait_until(loaded.control.knows_the_cluster)
        # Not before: librdkafka drops all addresses when the metadata has no brokers, and does not ask again.
        listeners.let_clients_in()
        loaded.housekeeping.start()
        loaded.cleaning.start()
        await loaded.moves.start()

    async def _start_metrics(self, services: Services) -> None:
        endpoint = self.config.metrics_endpoint
        if endpoint is not None:
            self.metrics = self._components.make_metrics_listener(services)
            await self.metrics.start(endpoint.host, endpoint.port)
            logger.info("metrics: http://%s:%d/metrics", endpoint.host, self.metrics.port)

    async def load_the_rest(self) -> None:
        """Load what was not needed to be ready, so that no first request waits for it."""
        await load_the_rest(self.services)

    async def _abandon(self) -> None:
        """Release everything after a failed start, so that the next start can have it."""
        components = self._components
        components.listeners.close()
        if self.metrics is not None:
            self.metrics.close()
        await components.node.leave()
        # A thread may still be loading logs: they are released after it has finished.
        components.stop_threads()
        if components.logs is not None:
            components.logs.abandon()

    async def stop(self) -> None:
        """Stop in order: no acknowledged record is lost, and the next start needs no recovery."""
        components, loaded = self._components, self._components.loaded
        if loaded is not None and self.config.controlled_shutdown_enable:
            await shut_down_controlled(components.node, loaded.services.controller_channel, self.config)
        components.listeners.stop_accepting()
        if self.metrics is not None:
            self.metrics.close()
        if loaded is not None:
            await loaded.moves.stop()
            await loaded.cleaning.stop()
            await loaded.housekeeping.stop()
        components.listeners.close()
        if loaded is not None:
            loaded.services.close_coordinators()
            await loaded.services.replicas.stop_replicating()
        components.features.stop()
        await components.node.leave()
        if loaded is not None:
            loaded.services.connections.close()
            await loaded.control.close()
            await loaded.services.flusher.stop()
        await components.stop_logs()
