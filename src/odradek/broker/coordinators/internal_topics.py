"""The topics that coordinators keep their state in: created when first needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from odradek.broker.requests.services import Services
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.cluster.metadata import PartitionMetadata
from odradek.cluster.topics.new_topics import NewTopic
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordinator.partitioning import partition_for
from odradek.groups.partitions import CONSUMER_OFFSETS
from odradek.transactions.partitions import TRANSACTION_STATE

CREATION_TIMEOUT_MS = 10_000


class InternalTopicPlan(NamedTuple):
    """How an internal topic is made."""

    name: str
    partition_count: int
    replication_factor: int
    # The replication factor was configured: fewer replicas are an error.
    is_factor_explicit: bool
    configs: Mapping[str, str]


def consumer_offsets(config: BrokerConfig) -> InternalTopicPlan:
    """The topic of groups and their offsets."""
    return InternalTopicPlan(
        CONSUMER_OFFSETS,
        config.offsets_topic_num_partitions,
        config.offsets_topic_replication_factor,
        config.is_explicit("offsets.topic.replication.factor"),
        {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
    )


def transaction_state(config: BrokerConfig) -> InternalTopicPlan:
    """The topic of transactions."""
    return InternalTopicPlan(
        TRANSACTION_STATE,
        config.transaction_state_log_num_partitions,
        config.transaction_state_log_replication_factor,
        config.is_explicit("transaction.state.log.replication.factor"),
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.transaction_state_log_min_isr),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        },
    )


async def partition_of(services: Services, plan: InternalTopicPlan, key: str) -> PartitionMetadata:
    """The partition that a key belongs to, with a leader: the topic is made if need be, and waited for.

    COORDINATOR_NOT_AVAILABLE, at once, if it has none now. That others have none is nothing to this key.
    """
    if plan.name not in services.image.topics:
        await _create(services, plan)
        await services.wait_for_topic(plan.name, CREATION_TIMEOUT_MS, plan.partition_count)
    topic = services.image.topics.get(plan.name)
    if topic is None:
        raise KafkaError(f"{plan.name} is not there yet", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    index = partition_for(key, len(topic.partitions))
    partition = topic.partitions[index]
    if not services.is_led(plan.name, index, partition):
        raise KafkaError(f"{plan.name}-{index} has no leader", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return partition


def with_fitting_min_isr(
    configs: Mapping[str, str], factor: int, min_insync_replicas: int
) -> Mapping[str, str]:
    """The settings with a lower min.insync.replicas if no replica could be down otherwise."""
    wanted = int(configs.get("min.insync.replicas", min_insync_replicas))
    highest = max(1, factor - 1)
    return configs if wanted <= highest else {**configs, "min.insync.replicas": str(highest)}


async def _create(services: Services, plan: InternalTopicPlan) -> None:
    factor = plan.replication_factor
    if not plan.is_factor_explicit:
        factor = min(factor, max(1, len(services.image.brokers)))
    configs = with_fitting_min_isr(plan.configs, factor, services.config().min_insync_replicas)
    try:
        await services.topics.create_topic(NewTopic(plan.name, plan.partition_count, factor, configs=configs))
    except KafkaError as error:
        if error.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise KafkaError(str(error), error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE) from error
