"""What the coordinator of groups knows of topics; the broker fills it from its metadata image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class TopicInfo(NamedTuple):
    """One topic that exists."""

    name: str
    topic_id: bytes
    partition_count: int


class Topics(Protocol):
    """The topics of now; an answer may be kept for as long as `version` stays."""

    @property
    def version(self) -> int:
        """Counts the changes that matter: topics made, grown or deleted."""
        ...

    def find(self, name: str) -> TopicInfo | None:
        """The topic of that name."""
        ...

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with that id."""
        ...

    def names(self) -> Iterable[str]:
        """The names of all topics."""
        ...


class NoTopics:
    """Nothing is known of topics; for those who have no use for them."""

    version = 0

    def find(self, name: str) -> TopicInfo | None:
        """None."""
        return None

    def name_of(self, topic_id: bytes) -> str | None:
        """None."""
        return None

    def names(self) -> Iterable[str]:
        """None."""
        return ()
