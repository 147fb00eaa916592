"""The components that the request handlers use; one instance per broker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.background.log_flusher import LogFlusher
from odradek.broker.background.log_moves import LogMoves
from odradek.broker.control.state_changes import StateChanges
from odradek.broker.requests.add_partitions_to_txn_manager import (
    COORDINATOR_VERSION,
    AddPartitionsToTxnManager,
)
from odradek.broker.requests.fetch.fetch_sessions import FetchSessions
from odradek.broker.requests.refused_batches import RefusedBatches
from odradek.broker.requests.waiting.partition_listener import PartitionListener
from odradek.broker.requests.waiting.purgatory import CommitPurgatory, Purgatory
from odradek.broker.security.acls import Authorizer
from odradek.broker.security.quotas import Quotas
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.dynamic.broker_settings import BrokerSettings
from odradek.broker.settings.dynamic.group_configs import GroupConfigs
from odradek.broker.settings.dynamic.topic_settings import TopicSettings
from odradek.cluster.acls import ClusterAcls
from odradek.cluster.metadata import MetadataImage, PartitionMetadata
from odradek.cluster.metadata_answers import MetadataAnswers
from odradek.cluster.topics.topic_admin import TopicAdmin
from odradek.common.clock import Clock
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.common.repeated_warnings import RepeatedWarnings
from odradek.net.broker_connection import DEFAULT_TIMEOUT_S, BrokerConnections
from odradek.net.request_limit import RequestLimit
from odradek.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from odradek.protocol.structs import Message
from odradek.replication.leader_throttle import LeaderThrottle
from odradek.replication.partition import Partition
from odradek.replication.replica_manager import ReplicaManager
from odradek.transactions.producer_ids import ProducerIds

if TYPE_CHECKING:
    from odradek.broker.control.control_requests import ControlRequestHandler
    from odradek.broker.control.controller_requests import ControllerRequestHandler
    from odradek.cluster.controller_channel import ControllerChannel
    from odradek.cluster.features import ClusterFeatures
    from odradek.coordination.store import Store
    from odradek.groups.service import GroupService
    from odradek.transactions.service import TransactionService


class SendToBroker(Protocol):
    """Sends a request to a broker and returns its response; OdradekError if there is none in time."""

    def __call__(
        self,
        broker_id: int,
        request: Message,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        version: int | None = None,
        purpose: str = "",
    ) -> Awaitable[Any]:
        """The response; requests of one purpose are answered in order."""
        ...


@dataclass(slots=True, eq=False, repr=False)
class Services:
    """The components that handlers use. Owned by the server, on the loop; `pool` is for what may block."""

    broker_id: int
    cluster_id: str
    clock: Clock
    loop: asyncio.AbstractEventLoop
    pool: Executor
    replicas: ReplicaManager
    fetch_sessions: FetchSessions
    waiting_produces: CommitPurgatory
    waiting_flushes: CommitPurgatory
    waiting_fetches: Purgatory
    image: MetadataImage
    producer_ids: ProducerIds
    config: Callable[[], BrokerConfig]
    topic_settings: TopicSettings
    broker_settings: BrokerSettings
    group_configs: GroupConfigs
    topics: TopicAdmin
    moves: LogMoves
    request_limit: RequestLimit
    # None: every client may do everything, without quotas.
    authorizer: Authorizer | None = None
    acls: ClusterAcls | None = None
    quotas: Quotas | None = None
    # Applies the controller's requests.
    control: ControlRequestHandler = field(init=False)
    # The requests of brokers to the controller: how they are sent, and handled if it is this broker.
    controller_channel: ControllerChannel = field(init=False)
    controller_requests: ControllerRequestHandler = field(init=False)
    # The connections to the other brokers.
    connections: BrokerConnections = field(init=False)
    # The replica to read from, by partition, client's rack, offset and listener; None for the leader.
    select_replica: Callable[[Partition, str, int, str], int | None] | None = None
    # Creates the group coordinator; called by `groups`, once.
    make_groups: Callable[[], GroupService] = field(init=False)
    # Creates the transaction coordinator; called by `transactions`, once.
    make_transactions: Callable[[], TransactionService] = field(init=False)
    # Sends a request to a broker, which may be this one.
    send_to_broker: SendToBroker = field(init=False)
    # What this broker asks transaction coordinators.
    add_partitions_to_txn_manager: AddPartitionsToTxnManager = field(init=False)
    # The present session at the store.
    store: Callable[[], Store] = field(init=False)
    # The finalized features of the cluster.
    features: ClusterFeatures = field(init=False)
    # Called for every change in the partitions of an internal topic, by its name.
    leaderships: dict[str, Callable[[Partition], None]] = field(default_factory=dict)
    # Wakes requests that wait for the controller's decisions.
    state_changes: StateChanges = field(default_factory=StateChanges)
    # Batches that clients send again.
    refused_batches: RefusedBatches = field(default_factory=RefusedBatches)
    # Which warnings about requests that are sent again and again are logged.
    warnings: RepeatedWarnings = field(default_factory=RepeatedWarnings)
    _answers: dict[str, MetadataAnswers] = field(default_factory=dict)
    _groups: GroupService | None = None
    _transactions: TransactionService | None = None
    # Called when more can be read from a partition, records were committed, or its leader changed.
    on_progress: Callable[[Partition], None] = field(init=False)
    # The limit of every fetch response; the first batch may be larger.
    fetch_max_bytes: int = field(init=False)
    flusher: LogFlusher = field(init=False)
    # The limit of what goes to followers out of sync; None until this broker replicates.
    leader_throttle: LeaderThrottle | None = None
    # Fetches of followers, which wait for the log end; those of consumers wait for the high watermark.
    waiting_followers: Purgatory = field(init=False)
    # DeleteRecords that wait for the log start offsets of followers.
    waiting_deletes: Purgatory = field(init=False)

    def __post_init__(self) -> None:
        self.fetch_max_bytes = self.config().fetch_max_bytes
        self.flusher = LogFlusher(self.replicas, self.clock, self.pool)
        self.waiting_followers = Purgatory(self.loop)
        self.waiting_deletes = Purgatory(self.loop)
        self.add_partitions_to_txn_manager = AddPartitionsToTxnManager(self.loop, self._ask_coordinator)
        self.on_progress = PartitionListener(
            self.waiting_fetches,
            self.waiting_followers,
            self.waiting_deletes,
            self.waiting_produces,
            self.waiting_flushes,
            self.leaderships,
            self.flusher.flush_soon,
        ).on_append

    async def _ask_coordinator(
        self, broker_id: int, request: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse:
        response: AddPartitionsToTxnResponse = await self.send_to_broker(
            broker_id, request, version=COORDINATOR_VERSION, purpose="transactions"
        )
        return response

    @property
    def groups(self) -> GroupService:
        """The group coordinator, created on first use."""
        if self._groups is None:
            self._groups = self.make_groups()
        return self._groups

    @property
    def transactions(self) -> TransactionService:
        """The transaction coordinator, created on first use."""
        if self._transactions is None:
            self._transactions = self.make_transactions()
        return self._transactions

    def close_coordinators(self) -> None:
        """Stop coordinating groups and transactions, for good."""
        self.leaderships.clear()
        if self._groups is not None:
            self._groups.close()
        if self._transactions is not None:
            self._transactions.close()

    def answers_for(self, listener: str) -> MetadataAnswers:
        """The metadata responses for the clients of a listener."""
        if listener not in self._answers:
            self._answers[listener] = MetadataAnswers(self.image, listener)
        return self._answers[listener]

    async def wait_for_topic(self, name: str, timeout_ms: int = 5000, partition_count: int = 1) -> bool:
        """Wait until so many partitions have leaders, here or elsewhere; False after the time-out."""
        deadline = self.loop.time() + timeout_ms / 1000
        return await self.wait_until(lambda: self._has_leaders(name, partition_count), deadline)

    async def wait_until(self, condition: Callable[[], bool], deadline: float) -> bool:
        """Wait for a state of image and replicas; False if the deadline, on the loop's clock, passes.

        Only for requests of `dispatch.WORKED_OFF_THE_LOOP`: they do not count as open requests meanwhile.
        """
        with self.request_limit.parked():
            return await self.state_changes.wait_until(condition, deadline)

    def _has_leaders(self, name: str, partition_count: int) -> bool:
        topic = self.image.topics.get(name)
        if topic is None or len(topic.partitions) < partition_count:
            return False
        return all(self.is_led(name, index, partition) for index, partition in topic.partitions.items())

    def is_led(self, name: str, index: int, partition: PartitionMetadata) -> bool:
        """Whether the partition has a leader, serving if it is this broker."""
        leader = partition.leader
        return leader >= 0 and (leader != self.broker_id or self.replicas.find(name, index) is not None)

    def why_not_here(self, topic: str, partition: int) -> ErrorCode:
        """The error for a partition that has no replica here."""
        if self.replicas.logs.directory_of(TopicPartition(topic, partition)) is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self.image.partition(topic, partition) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
