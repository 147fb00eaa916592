"""The topics as the group coordinator sees them; the broker fills this from its metadata image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class TopicInfo(NamedTuple):
    """One topic that exists."""

    name: str
    topic_id: bytes
    partition_count: int


class Topics(Protocol):
    """The current topics; results may be cached for as long as `version` is the same."""

    @property
    def version(self) -> int:
        """Incremented when topics are created, extended or deleted."""
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
    """No topics, for states that do not need them."""

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
