"""Creates the topics of log directories again whose embedded store was lost, from what the directories say.

Topic ids come from `partition.metadata`, leader epochs and producer ids from the logs, the cluster id from
`meta.properties` (see `ClusterNode.connect`). Settings of topics were in the store only: so that nothing is
deleted by defaults that were not meant for it, retention is off until it is set.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from uuid import UUID

from odradek.broker.coordinators.internal_topics import consumer_offsets
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.dynamic.topic_settings import TopicSettings
from odradek.common.errors import OdradekError
from odradek.coordination import paths
from odradek.coordination.payloads import (
    PartitionStateNode,
    ProducerIdBlock,
    Replicas,
    TopicAssignment,
    encode_config,
)
from odradek.coordination.store import Create, Operation, SetData, Store
from odradek.log.directories.log_manager import LogManager
from odradek.log.partition.partition_log import PartitionLog

logger = logging.getLogger(__name__)

NO_RETENTION = {"retention.ms": "-1", "retention.bytes": "-1"}
_NEXT = "restore the store from a backup, name the right one by odradek.coordination, or move these away"

Topics = Mapping[str, Mapping[int, PartitionLog]]
Configs = Mapping[str, str]


class CannotAdopt(OdradekError):
    """The log directories hold partitions, the store has no topics, and they cannot be created again."""


async def adopt_logs(
    store: Store, logs: LogManager, broker_id: int, config: BrokerConfig, topic_settings: TopicSettings
) -> None:
    """Create the topics of the logs in a store that has none, with their settings; raises CannotAdopt.

    This broker becomes the only replica. One transaction: all of them, or none.
    """
    topics = _topics(logs)
    operations: list[Operation] = []
    for name, partitions in topics.items():
        operations += _topic_writes(name, partitions, broker_id, _configs(name, config))
        if await store.exists(paths.topic_entity(name).path) is not None:
            operations[-1] = SetData(paths.topic_entity(name).path, encode_config(_configs(name, config)))
    last_id = max((entry for log in logs.logs.values() for entry in log.producers.entries), default=-1)
    block = ProducerIdBlock(broker_id, last_id, last_id)
    if last_id >= 0:
        operations.append(SetData(paths.LATEST_PRODUCER_ID_BLOCK, block.encode()))
    await store.multi(operations)
    _warn(topics)
    for name, partitions in topics.items():
        await topic_settings.load(store, name)
        for log in partitions.values():
            log.config = topic_settings.log_config(name)


def _topics(logs: LogManager) -> Topics:
    """The logs by topic and partition, if all partitions of each topic are there."""
    if logs.report.corrupted:
        raise _refusal("damaged (`odradek log repair` repairs them)", map(str, logs.report.corrupted))
    failed = [directory.path for directory in logs.directories if directory.failure is not None]
    if failed:
        raise _refusal("offline", failed)
    topics: dict[str, dict[int, PartitionLog]] = defaultdict(dict)
    for (topic, index), log in sorted(logs.logs.items()):
        topics[topic][index] = log
    for topic, partitions in topics.items():
        _topic_id(topic, partitions)
        if list(partitions) != list(range(len(partitions))):
            missing = sorted({*range(max(partitions))} - {*partitions})
            raise _refusal(
                f"without partitions {missing} of their topic", [f"{topic}-{n}" for n in partitions]
            )
    return topics


def _topic_id(topic: str, partitions: Mapping[int, PartitionLog]) -> UUID:
    ids = {log.topic_id for log in partitions.values()}
    topic_id = ids.pop()
    if ids or topic_id is None:
        names = [f"{topic}-{index}" for index in partitions]
        raise _refusal("without one topic id in partition.metadata", names)
    return topic_id


def _refusal(problem: str, names: Iterable[str]) -> CannotAdopt:
    return CannotAdopt(
        f"the store has no topics, and those of the log directories cannot be created again, for these are "
        f"{problem}: {', '.join(names)}; {_NEXT}"
    )


def _configs(topic: str, config: BrokerConfig) -> Configs:
    plan = consumer_offsets(config)
    return plan.configs if topic == plan.name else NO_RETENTION


def _topic_writes(
    name: str, partitions: Mapping[int, PartitionLog], broker_id: int, configs: Configs
) -> list[Operation]:
    """A topic with the state of each partition; its settings come last."""
    replicas = (broker_id,)
    written = TopicAssignment(
        {index: Replicas(replicas) for index in partitions}, _topic_id(name, partitions)
    )
    operations: list[Operation] = [
        Create(paths.topic(name), written.encode()),
        Create(paths.topic_partitions(name)),
    ]
    for log in partitions.values():
        # An epoch after all those of the log: the controller would start at 0 otherwise.
        state = PartitionStateNode(broker_id, log.epochs.latest + 1, replicas, controller_epoch=0)
        operations.append(Create(paths.topic_partition(log.partition)))
        operations.append(Create(paths.partition_state(log.partition), state.encode()))
    operations.append(Create(paths.topic_entity(name).path, encode_config(configs)))
    return operations


def _warn(topics: Topics) -> None:
    logger.warning(
        "The store had no topics, but the log directories hold some. They were created again, with this "
        "broker as the only replica: %s. Settings of topics, groups and users, and ACLs, were in the store "
        "that is lost. retention.ms and retention.bytes are -1 now, so that nothing is deleted: set what "
        "should hold by `odradek configs alter`.",
        ", ".join(f"{name} ({len(partitions)} partitions)" for name, partitions in topics.items()),
    )
