"""A client's metadata: the brokers, topics and leaders of the cluster. No I/O, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from uuid import UUID

from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import MetadataRequest, MetadataResponse

NO_NODE = -1
NO_EPOCH = -1
_ZERO_ID = bytes(16)


@dataclass(frozen=True, slots=True)
class Node:
    """A broker with its advertised address."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionView:
    """The leader and the replicas of a partition, by the newest metadata."""

    partition: int
    leader_id: int = NO_NODE
    leader_epoch: int = NO_EPOCH
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    error_code: int = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class TopicView:
    """One topic; `topic_id` is all zeros where the broker is older than topic ids."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: dict[int, PartitionView] = field(default_factory=dict)

    @property
    def uuid(self) -> UUID:
        """The topic id as a uuid."""
        return UUID(bytes=self.topic_id)


class Metadata:
    """The newest metadata, and the topics it must cover. Owned by `Brokers`; any code on its loop may read
    it.

    `topics` has the topics that exist; `errors` has the error codes of the others.
    """

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = NO_NODE
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, TopicView] = {}
        self.errors: dict[str, int] = {}
        self.names: dict[bytes, str] = {}
        self.updated_ms: float | None = None
        self.edition = 0
        """Grows with every change of nodes, topics and leaders."""
        self.on_update: Callable[[], object] | None = None
        """Called after each update, for everything that depends on metadata."""
        self._wanted: set[str] = set()
        self._held: Counter[str] = Counter()
        self._wants_all = False
        # Counts reasons to refresh; a response settles those that existed when its request was sent.
        self._reasons = 1
        self._requested = 0
        self._settled = 0

    # What to request.

    def want(self, topics: Iterable[str]) -> None:
        """Cover these topics from now on."""
        new = set(topics) - self._wanted
        if new:
            adds_topics = not self._wants_all and not new <= self._held.keys()
            self._wanted |= new
            if adds_topics:
                self.mark_stale()

    def forget(self, topics: Iterable[str]) -> None:
        """These topics need not be covered any more."""
        for topic in topics:
            self._wanted.discard(topic)
            self._drop_unwanted(topic)

    @contextmanager
    def holding(self, topics: Iterable[str]) -> Iterator[None]:
        """Cover these topics for the duration of one call, in addition to the others."""
        held = set(topics)
        if not self._wants_all and not held <= self._wanted | self._held.keys():
            self.mark_stale()
        self._held.update(held)
        try:
            yield
        finally:
            for topic in held:
                self._held[topic] -= 1
                if not self._held[topic]:
                    del self._held[topic]
                self._drop_unwanted(topic)

    def want_all(self, wanted: bool = True) -> None:
        """Cover every topic of the cluster, as a subscription to a pattern needs."""
        if wanted and not self._wants_all:
            self.mark_stale()
        self._wants_all = wanted

    def request(self, *, may_create: bool = False) -> MetadataRequest:
        """The request whose response covers all topics that are wanted."""
        self._requested = self._reasons
        if self._wants_all:
            return MetadataRequest(topics=None, allow_auto_topic_creation=may_create)
        rows = [MetadataRequest.Topics(name=name) for name in sorted(self._wanted | self._held.keys())]
        return MetadataRequest(topics=rows, allow_auto_topic_creation=may_create)

    def mark_stale(self) -> None:
        """A response contradicted the metadata, or more topics are wanted than it covers."""
        self._reasons += 1

    @property
    def is_stale(self) -> bool:
        """Whether something happened since the metadata was requested."""
        return self._settled < self._reasons

    def needs_refresh(self, now_ms: float, max_age_ms: int) -> bool:
        """Whether the metadata is known to be wrong, or old."""
        return self.is_stale or self.updated_ms is None or now_ms - self.updated_ms >= max_age_ms

    # What was received.

    def update(self, response: MetadataResponse, now_ms: float) -> None:
        """Update from the response to `request`."""
        self.edition += 1
        self.nodes = {
            row.node_id: Node(row.node_id, row.host, row.port, row.rack) for row in response.brokers
        }
        self.cluster_id = response.cluster_id if response.cluster_id is not None else self.cluster_id
        self.controller_id = response.controller_id
        received = {row.name: row for row in response.topics if row.name is not None}
        if self._wants_all:
            for gone in self.topics.keys() - received.keys():
                self._drop(gone)
        for row in received.values():
            self._take(row)
        self.updated_ms = now_ms
        self._settled = self._requested
        if self.on_update is not None:
            self.on_update()

    def take_leader(self, partition: TopicPartition, leader_id: int, leader_epoch: int) -> bool:
        """Update a leader from another response (KIP-951); whether it changed."""
        topic = self.topics.get(partition.topic)
        known = topic.partitions.get(partition.partition) if topic is not None else None
        if (
            topic is None
            or known is None
            or leader_epoch <= known.leader_epoch
            or leader_id not in self.nodes
        ):
            return False
        self.edition += 1
        topic.partitions[partition.partition] = replace(known, leader_id=leader_id, leader_epoch=leader_epoch)
        return True

    def add_node(self, node: Node) -> None:
        """Add a broker named in another response."""
        self.edition += 1
        self.nodes[node.node_id] = node

    def leader(self, partition: TopicPartition) -> PartitionView | None:
        """The partition if it has a known leader."""
        topic = self.topics.get(partition.topic)
        view = topic.partitions.get(partition.partition) if topic is not None else None
        return view if view is not None and view.leader_id in self.nodes else None

    def _take(self, row: MetadataResponse.Topics) -> None:
        assert row.name is not None
        if row.error_code != ErrorCode.NONE:
            self._drop(row.name)
            self.errors[row.name] = row.error_code
            return
        before = self.topics.get(row.name)
        if before is not None and before.topic_id != row.topic_id:
            self._drop(row.name)  # deleted and created again: its epochs start over
            before = None
        partitions = {}
        for partition_row in row.partitions:
            view = _partition_view(partition_row)
            known = before.partitions.get(view.partition) if before is not None else None
            # Brokers learn of elections at different times; never go back to an earlier leader.
            is_older = known is not None and NO_EPOCH < view.leader_epoch < known.leader_epoch
            partitions[view.partition] = known if known is not None and is_older else view
        self.topics[row.name] = TopicView(row.name, row.topic_id, row.is_internal, partitions)
        self.errors.pop(row.name, None)
        if row.topic_id != _ZERO_ID:
            self.names[row.topic_id] = row.name

    def _drop_unwanted(self, topic: str) -> None:
        if topic not in self._wanted and topic not in self._held and not self._wants_all:
            self._drop(topic)

    def _drop(self, topic: str) -> None:
        self.edition += 1
        self.errors.pop(topic, None)
        gone = self.topics.pop(topic, None)
        if gone is not None:
            self.names.pop(gone.topic_id, None)


def _partition_view(row: MetadataResponse.Topics.Partitions) -> PartitionView:
    return PartitionView(
        partition=row.partition_index,
        leader_id=row.leader_id,
        leader_epoch=row.leader_epoch,
        replicas=tuple(row.replica_nodes),
        isr=tuple(row.isr_nodes),
        offline_replicas=tuple(row.offline_replicas),
        error_code=row.error_code,
    )
