"""Puts the transaction coordinator together: its topic, timers, settings, and where markers are sent."""

from __future__ import annotations

from odradek.broker.coordinators.adapters import InternalTopic, LoopTimer, follow_leadership
from odradek.broker.requests.services import Services
from odradek.broker.requests.store_calls import from_store
from odradek.cluster.features import TRANSACTION_VERSION
from odradek.common.ids import TopicPartition
from odradek.coordination import paths
from odradek.coordination.errors import NoNode, StoreError
from odradek.coordination.payloads import TopicAssignment
from odradek.coordinator.runtime import CoordinatorRuntime
from odradek.log.config import LogConfig
from odradek.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from odradek.replication.partition import Partition
from odradek.transactions.completions import Completions
from odradek.transactions.markers import MarkerWriter
from odradek.transactions.partitions import TRANSACTION_STATE
from odradek.transactions.service import TransactionService
from odradek.transactions.settings import TransactionSettings
from odradek.transactions.state import TransactionCounters, TransactionsState
from odradek.transactions.transaction import EPOCH_BUMP_FROM, Transaction

COMMIT_TIMEOUT_MS = 5000
MARKERS_TIMEOUT_S = 15.0
"""Longer than leaders wait for the commit of a marker."""
MARKERS_V2 = 2
"""The version of WriteTxnMarkers that names the transaction.version; brokers know it from that level on."""


class MarkerCluster:
    """Finds leaders in the metadata image and sends them the markers."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def leader_of(self, partition: TopicPartition) -> int | None:
        """The leader, -1 if there is none; None if the image does not have the partition."""
        known = self._services.image.partition(*partition)
        return None if known is None else known.leader

    async def is_deleted(self, partition: TopicPartition) -> bool:
        """Whether the store has no such partition: its topic is gone, or was created again with fewer."""
        try:
            node = await self._services.store().get(paths.topic(partition.topic))
        except NoNode:
            return True
        except StoreError:
            return False
        return partition.partition not in TopicAssignment.decode(node.payload).partitions

    async def write_markers(
        self, broker_id: int, request: WriteTxnMarkersRequest, *, is_retry: bool
    ) -> WriteTxnMarkersResponse:
        """Send the request to that broker, which may be this one, in a version that it knows."""
        version = None
        if self._services.features.highest_level(broker_id, TRANSACTION_VERSION) >= EPOCH_BUMP_FROM:
            version = MARKERS_V2
        else:
            for marker in request.markers:
                marker.transaction_version = 0
        response: WriteTxnMarkersResponse = await self._services.send_to_broker(
            broker_id,
            request,
            timeout_s=MARKERS_TIMEOUT_S,
            version=version,
            purpose="retried-markers" if is_retry else "markers",
        )
        return response


def coordinate_transactions(services: Services) -> TransactionService:
    """A coordinator over the partitions of `__transaction_state` that this broker leads, now or later."""
    config = services.config()
    topic = InternalTopic(
        TRANSACTION_STATE,
        services.replicas,
        services.waiting_produces,
        services.pool,
        load_bytes=config.transaction_state_log_load_buffer_size,
    )

    counters = TransactionCounters()
    completions = Completions()

    def new_state(partition: int) -> TransactionsState:
        def on_prepared(transaction: Transaction) -> None:
            service.on_prepared(partition, transaction)

        return TransactionsState(
            lambda: transaction_settings(services, partition), on_prepared, completions.notify, counters
        )

    runtime = CoordinatorRuntime(
        topic, LoopTimer(), services.clock, new_state, commit_timeout_ms=COMMIT_TIMEOUT_MS
    )
    markers = MarkerWriter(
        MarkerCluster(services),
        lambda work: service.start(work),  # noqa: PLW0108 (it is made below)
    )
    service = TransactionService(
        runtime,
        markers,
        lambda: _partition_count(services),
        lambda: from_store(services.producer_ids.next()),
        counters,
        completions,
    )
    # Markers that are being written have the epoch in which they were prepared: a new one prepares them anew.
    follow = follow_leadership(runtime, services.replicas, keeps_state=False)

    def changed(partition: Partition) -> None:
        if not partition.is_leader:
            markers.drop(partition.topic_partition.partition)
        follow(partition)

    services.leaderships[TRANSACTION_STATE] = changed
    services.image.listeners.append(lambda change: markers.leaders_changed(change.changed))
    return service


def _partition_count(services: Services) -> int:
    topic = services.image.topics.get(TRANSACTION_STATE)
    return 0 if topic is None else len(topic.partitions)


def transaction_settings(services: Services, partition: int) -> TransactionSettings:
    """The settings of the broker and of this log of `__transaction_state`, and the finalized feature."""
    config = services.config()
    replica = services.replicas.find(TRANSACTION_STATE, partition)
    topic_config = LogConfig() if replica is None else replica.log.config
    return TransactionSettings(
        max_timeout_ms=config.transaction_max_timeout_ms,
        expiration_ms=config.transactional_id_expiration_ms,
        abort_check_interval_ms=config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
        expiry_check_interval_ms=config.transaction_remove_expired_transaction_cleanup_interval_ms,
        transaction_version=services.features.level(TRANSACTION_VERSION),
        max_batch_bytes=min(topic_config.max_message_bytes, topic_config.max_segment_bytes),
    )
