"""Builds what the request handlers use: services, topic administration, connections to other brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from odradek.broker.background.log_moves import LogMoves
from odradek.broker.control.controller_requests import ControllerRequestHandler
from odradek.broker.requests.fetch.fetch_sessions import FetchSessions
from odradek.broker.requests.services import Services
from odradek.broker.requests.waiting.purgatory import CommitPurgatory, Purgatory
from odradek.broker.security.acls import Authorizer
from odradek.broker.settings.alter import check_topic
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.dynamic.broker_settings import BrokerSettings
from odradek.broker.settings.dynamic.group_configs import GroupConfigs
from odradek.broker.settings.dynamic.topic_settings import TopicSettings
from odradek.cluster.acls import ClusterAcls
from odradek.cluster.controller_channel import ControllerChannel
from odradek.cluster.features import ClusterFeatures
from odradek.cluster.metadata import MetadataImage
from odradek.cluster.node import ClusterNode
from odradek.cluster.topics.placement import BrokerLocation
from odradek.cluster.topics.topic_admin import TopicAdmin, TopicDefaults
from odradek.common.clock import Clock
from odradek.net.broker_connection import Address, BrokerConnections
from odradek.net.request_limit import RequestLimit
from odradek.replication.replica_manager import ReplicaManager
from odradek.transactions.producer_ids import ProducerIds

CurrentConfig = Callable[[], BrokerConfig]
"""Returns the configuration as it is now; dynamic settings change it."""


def make_topic_admin(current_config: CurrentConfig, node: ClusterNode, image: MetadataImage) -> TopicAdmin:
    """Creates, extends and deletes topics in the store."""
    config = current_config()

    def check_configs(topic: str, configs: Mapping[str, str]) -> None:
        check_topic(current_config(), configs)

    return TopicAdmin(
        lambda: node.store,
        lambda: [BrokerLocation(broker.broker_id, broker.rack) for broker in image.brokers.values()],
        defaults=TopicDefaults(
            config.num_partitions, config.default_replication_factor, config.delete_topic_enable
        ),
        check_configs=check_configs,
    )


def make_services(
    current_config: CurrentConfig,
    node: ClusterNode,
    clock: Clock,
    pool: Executor,
    *,
    replicas: ReplicaManager,
    moves: LogMoves,
    topic_settings: TopicSettings,
    broker_settings: BrokerSettings,
    group_configs: GroupConfigs,
    features: ClusterFeatures,
    request_limit: RequestLimit,
    authorizer: Authorizer | None,
    acls: ClusterAcls | None,
) -> Services:
    """What the request handlers work with. Called on the broker's loop, when its logs are loaded."""
    loop = asyncio.get_running_loop()
    image = MetadataImage(node.cluster_id)
    services = Services(
        broker_id=node.broker_id,
        cluster_id=node.cluster_id,
        clock=clock,
        loop=loop,
        pool=pool,
        replicas=replicas,
        fetch_sessions=FetchSessions(current_config().max_incremental_fetch_session_cache_slots),
        waiting_produces=CommitPurgatory(loop),
        waiting_flushes=CommitPurgatory(loop, until_flushed=True),
        waiting_fetches=Purgatory(loop),
        image=image,
        producer_ids=ProducerIds(lambda: node.store, node.broker_id),
        config=current_config,
        topic_settings=topic_settings,
        broker_settings=broker_settings,
        group_configs=group_configs,
        topics=make_topic_admin(current_config, node, image),
        moves=moves,
        request_limit=request_limit,
        authorizer=authorizer,
        acls=acls,
    )
    services.store = lambda: node.store
    services.features = features
    connect_to_brokers(services, node)
    return services


def connect_to_brokers(services: Services, node: ClusterNode) -> None:
    """Make the connections to the other brokers and to the controller; they connect when first used."""

    def address_of(broker_id: int) -> Address | None:
        broker = node.live_brokers().get(broker_id)
        endpoint = broker.endpoint(services.config().inter_broker_listener) if broker is not None else None
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    services.connections = BrokerConnections(address_of, f"broker-{node.broker_id}")
    services.send_to_broker = services.connections.send
    services.controller_requests = ControllerRequestHandler(
        node, services.producer_ids, services.image, services.state_changes
    )
    services.controller_channel = ControllerChannel(
        node.broker_id,
        lambda: node.controller_id,
        services.connections,
        services.controller_requests.handle,
    )
