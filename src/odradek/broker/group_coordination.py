"""Puts the group coordinator together: its topic, its timers, its settings from the broker's."""

from __future__ import annotations

from odradek.broker.adapters import InternalTopic, LoopTimer, follow_leadership
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.services import Services
from odradek.coordinator.runtime import CoordinatorRuntime
from odradek.groups.partitions import CONSUMER_OFFSETS
from odradek.groups.service import GroupService
from odradek.groups.settings import GroupSettings
from odradek.groups.state import GroupsState
from odradek.records.compression import Codec

MINUTE_MS = 60_000


def coordinate_groups(services: Services) -> GroupService:
    """A coordinator over the partitions of `__consumer_offsets` that this broker leads, now or later."""
    config = services.config()
    topic = InternalTopic(
        CONSUMER_OFFSETS,
        services.replicas,
        services.waiting_produces,
        services.pool,
        load_bytes=config.offsets_load_buffer_size,
    )
    runtime = CoordinatorRuntime(
        topic,
        LoopTimer(),
        services.clock,
        lambda: GroupsState(lambda: group_settings(services.config())),
        commit_timeout_ms=config.offsets_commit_timeout_ms,
        codec=Codec(config.offsets_topic_compression_codec),
    )
    services.leaderships[CONSUMER_OFFSETS] = follow_leadership(runtime, services.replicas)
    return GroupService(runtime, lambda: _partition_count(services))


def _partition_count(services: Services) -> int:
    topic = services.image.topics.get(CONSUMER_OFFSETS)
    return 0 if topic is None else len(topic.partitions)


def group_settings(config: BrokerConfig) -> GroupSettings:
    """The part of a broker's configuration that groups live by."""
    return GroupSettings(
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        max_size=config.group_max_size,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * MINUTE_MS,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
    )
