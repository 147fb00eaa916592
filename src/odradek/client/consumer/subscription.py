"""The subscription of a consumer: nothing yet, assigned partitions, or topics that a group shares. No I/O."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from odradek.client.consumer.errors import NotSubscribed
from odradek.client.metadata import Metadata
from odradek.common.ids import TopicPartition


class RebalanceListener:
    """Called in `poll` with the partitions that a member is assigned and loses. Override what you need."""

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions are revoked once this returns: the last chance to commit."""

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions were added; positions may be set with `seek`."""

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions may have other owners already: nothing can be committed."""
        self.on_partitions_revoked(partitions)


class SubscriptionType:
    """What the user has subscribed to. Changed by the user's thread, read by the loop: each field at once."""

    def __init__(self) -> None:
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.regex: str | None = None
        self.listener: RebalanceListener | None = None
        self.is_manual = False

    @property
    def is_group(self) -> bool:
        """Whether a group decides what is assigned."""
        return bool(self.topics) or self.pattern is not None or self.regex is not None

    def subscribe(
        self,
        topics: Iterable[str],
        pattern: str | re.Pattern[str] | None,
        listener: RebalanceListener | None,
        *,
        broker_matches: bool = False,
    ) -> None:
        """Share topics with the group; a pattern that is text may be matched by the broker."""
        if self.is_manual:
            raise NotSubscribed("this consumer has partitions by assign(); unsubscribe() first")
        if listener is not None and not hasattr(listener, "on_partitions_assigned"):
            raise TypeError(f"a listener is a RebalanceListener, not {listener!r}")
        self.topics = frozenset(topics)
        self.regex = pattern if broker_matches and isinstance(pattern, str) else None
        if self.regex is not None:
            self.pattern = None
        else:
            self.pattern = re.compile(pattern) if isinstance(pattern, str) else pattern
        self.listener = listener

    def assign(self) -> None:
        """Assign partitions without a group."""
        if self.is_group:
            raise NotSubscribed("this consumer has topics by subscribe(); unsubscribe() first")
        self.is_manual = True

    def clear(self) -> None:
        """Subscribe to nothing."""
        self.topics, self.pattern, self.regex = frozenset(), None, None
        self.listener, self.is_manual = None, False

    def matching(self, metadata: Metadata, *, excludes_internal: bool) -> frozenset[str]:
        """The subscribed topics: those named, and those that match."""
        if self.pattern is None:
            return self.topics
        return self.topics | {
            name
            for name, topic in metadata.topics.items()
            if self.pattern.fullmatch(name) and not (excludes_internal and topic.is_internal)
        }
