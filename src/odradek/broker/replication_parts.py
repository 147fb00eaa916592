"""Builds what replicates partitions with other brokers: fetchers, ISR changes, the selector of replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from odradek.broker.background.log_cleaning import LogCleaning
from odradek.broker.requests.fetch.preferred_replica import RackAwareSelector
from odradek.broker.requests.services import Services
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.declarations.replication import RACK_AWARE_SELECTOR
from odradek.cluster.metadata import ImageChange
from odradek.common.config import LONG_MAX
from odradek.log.partition.partition_log import PartitionLog
from odradek.net.broker_connection import BrokerConnections
from odradek.replication.follower.fetcher_context import FetcherContext, FetcherSettings
from odradek.replication.follower.fetcher_manager import FetcherManager
from odradek.replication.isr_changes import IsrChanges, Send
from odradek.replication.leader_throttle import LeaderThrottle

InPool = Callable[[Callable[[], Any]], Awaitable[Any]]


def replicate(
    services: Services,
    connections: BrokerConnections,
    send_to_controller: Send,
    broker_epoch: Callable[[], int],
    cleaning: LogCleaning,
    in_pool: InPool,
) -> None:
    """Have the replica manager follow other brokers and change ISRs, before it hosts a partition.

    What blocks runs by `in_pool`.
    """
    replicas, image, config = services.replicas, services.image, services.config

    def registered_epoch(broker_id: int) -> int | None:
        broker = image.brokers.get(broker_id)
        return None if broker is None else broker.epoch

    def brokers_changed(change: ImageChange) -> None:
        replicas.on_brokers_changed()

    truncated_logs: set[asyncio.Future[Any]] = set()

    def on_truncated(log: PartitionLog) -> None:
        writing = asyncio.ensure_future(in_pool(cleaning.truncated(log)))
        truncated_logs.add(writing)
        writing.add_done_callback(truncated_logs.discard)

    context = FetcherContext(
        broker_id=services.broker_id,
        current_settings=_cached_settings(config),
        clock=services.clock,
        counters=replicas.counters,
        connect=lambda broker_id, index: connections.to(broker_id, f"fetcher-{index}"),
        broker_epoch=broker_epoch,
        in_pool=in_pool,
        on_truncated=on_truncated,
        on_disk_error=replicas.disk_failed,
    )
    isr_changes = IsrChanges(
        services.broker_id,
        send_to_controller,
        broker_epoch,
        registered_epoch,
        replicas.counters,
        max_lag_ms=config().replica_lag_time_max_ms,
    )
    services.leader_throttle = LeaderThrottle(services.broker_id, _cached_leader_rate(config))
    replicas.replicate_with(isr_changes, FetcherManager(context))
    image.listeners.append(brokers_changed)
    if config().replica_selector_class == RACK_AWARE_SELECTOR:
        services.select_replica = RackAwareSelector(image)


def _cached_leader_rate(config: Callable[[], BrokerConfig]) -> Callable[[], int]:
    known: BrokerConfig | None = None
    rate = LONG_MAX

    def current() -> int:
        nonlocal known, rate
        new_config = config()
        if new_config is not known:
            known = new_config
            rate = new_config.leader_replication_throttled_rate
        return rate

    return current


def _cached_settings(config: Callable[[], BrokerConfig]) -> Callable[[], FetcherSettings]:
    """The fetchers' part of the configuration, built again when that has changed."""
    known: BrokerConfig | None = None
    settings = FetcherSettings()

    def current() -> FetcherSettings:
        nonlocal known, settings
        new_config = config()
        if new_config is not known:
            known = new_config
            settings = FetcherSettings(
                num_replica_fetchers=new_config.num_replica_fetchers,
                wait_max_ms=new_config.replica_fetch_wait_max_ms,
                min_bytes=new_config.replica_fetch_min_bytes,
                max_bytes=new_config.replica_fetch_max_bytes,
                response_max_bytes=new_config.replica_fetch_response_max_bytes,
                backoff_ms=new_config.replica_fetch_backoff_ms,
                socket_timeout_ms=new_config.replica_socket_timeout_ms,
                throttled_rate=new_config.follower_replication_throttled_rate,
            )
        return settings

    return current
