"""Puts the group coordinator together: its topic, its timers, its settings from the broker's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from odradek.broker.coordinators.adapters import InternalTopic, LoopTimer, follow_leadership
from odradek.broker.requests.services import Services
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.cluster.metadata import ImageChange, MetadataImage
from odradek.coordinator.runtime import CoordinatorRuntime
from odradek.groups.partitions import CONSUMER_OFFSETS
from odradek.groups.service import GroupService
from odradek.groups.settings import GroupSettings
from odradek.groups.state import GroupsState
from odradek.groups.topics import TopicInfo
from odradek.records.compression import Codec

MINUTE_MS = 60_000


class ImageTopics:
    """The topics of the metadata image, with a version that counts only what matters to groups."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._known = self._shape()
        self.version = 0
        image.listeners.append(self._changed)

    def find(self, name: str) -> TopicInfo | None:
        """The topic of that name."""
        topic = self._image.topics.get(name)
        return None if topic is None else TopicInfo(name, topic.topic_id, len(topic.partitions))

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with that id."""
        return self._image.names_by_id.get(topic_id)

    def names(self) -> Iterable[str]:
        """The names of all topics; a pattern matches internal ones too, as in Kafka."""
        return self._image.topics

    def _changed(self, change: ImageChange) -> None:
        shape = self._shape()
        if shape != self._known:
            self._known = shape
            self.version += 1

    def _shape(self) -> dict[bytes, int]:
        return {topic.topic_id: len(topic.partitions) for topic in self._image.topics.values()}


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
    topics = ImageTopics(services.image)
    runtime = CoordinatorRuntime(
        topic,
        LoopTimer(),
        services.clock,
        lambda _: GroupsState(
            lambda: group_settings(services.config()),
            topics,
            lambda group_id: settings_of(services, group_id),
        ),
        commit_timeout_ms=config.offsets_commit_timeout_ms,
        codec=Codec(config.offsets_topic_compression_codec),
    )
    services.leaderships[CONSUMER_OFFSETS] = follow_leadership(runtime, services.replicas, keeps_state=True)
    service = GroupService(runtime, lambda: _partition_count(services))
    deletions: set[asyncio.Task[None]] = set()

    def delete_offsets(change: ImageChange) -> None:
        if change.deleted:
            task = services.loop.create_task(service.on_partitions_deleted(change.deleted))
            deletions.add(task)
            task.add_done_callback(deletions.discard)

    services.image.listeners.append(delete_offsets)
    return service


def _partition_count(services: Services) -> int:
    topic = services.image.topics.get(CONSUMER_OFFSETS)
    return 0 if topic is None else len(topic.partitions)


def settings_of(services: Services, group_id: str) -> GroupSettings:
    """The settings of one group: the broker's settings, and its own in place of them."""
    settings = group_settings(services.config())
    own = services.group_configs.find(group_id)
    if own is None:
        return settings
    return replace(
        settings,
        consumer_session_timeout_ms=own.consumer_session_timeout_ms,
        consumer_heartbeat_interval_ms=own.consumer_heartbeat_interval_ms,
        consumer_assignment_interval_ms=own.consumer_assignment_interval_ms,
    )


def group_settings(config: BrokerConfig) -> GroupSettings:
    """The part of a broker's configuration that the group coordinator uses."""
    policy = config.group_consumer_migration_policy.upper()
    return GroupSettings(
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        max_size=config.group_max_size,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        is_consumer_protocol_enabled="consumer" in config.group_coordinator_rebalance_protocols,
        consumer_session_timeout_ms=config.group_consumer_session_timeout_ms,
        consumer_heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
        consumer_max_size=config.group_consumer_max_size,
        consumer_assignors=config.group_consumer_assignors,
        consumer_assignment_interval_ms=config.group_consumer_assignment_interval_ms,
        is_upgrade_enabled=policy in ("UPGRADE", "BIDIRECTIONAL"),
        is_downgrade_enabled=policy in ("DOWNGRADE", "BIDIRECTIONAL"),
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * MINUTE_MS,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
    )
