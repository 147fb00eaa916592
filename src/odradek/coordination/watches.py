"""Which watchers wait for what, and what a watcher missed while nobody could tell it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from odradek.coordination.store import EventType, NodeStat, Watcher, WatchEvent


class WatchKind(Enum):
    """`get` and `exists` watch the node; `children` watches the list of its children."""

    NODE = "node"
    CHILDREN = "children"


class Delivery(NamedTuple):
    """A watcher to be called, and with what."""

    watcher: Watcher
    event: WatchEvent


class Watch(NamedTuple):
    """One place that is watched, and the facts that were known there when the watch was set."""

    kind: WatchKind
    path: str
    known: NodeStat | None


_KINDS_OF_EVENT = {
    EventType.CREATED: (WatchKind.NODE,),
    EventType.DATA_CHANGED: (WatchKind.NODE,),
    EventType.DELETED: (WatchKind.NODE, WatchKind.CHILDREN),
    EventType.CHILDREN_CHANGED: (WatchKind.CHILDREN,),
}


class Watches:
    """The one-shot watches of one session. Owned by whoever reads for that session: one thread, no lock.

    Watchers of one place fire together; the same watcher set twice fires once.
    """

    def __init__(self) -> None:
        # The dict inside serves as an ordered set: watchers fire in the order in which they were set.
        self._waiting: dict[tuple[WatchKind, str], dict[Watcher, NodeStat | None]] = {}

    def add(self, watch: Watch, watcher: Watcher) -> None:
        """Remember a watcher until its event comes."""
        self._waiting.setdefault((watch.kind, watch.path), {})[watcher] = watch.known

    def trigger(self, events: Iterable[WatchEvent]) -> list[Delivery]:
        """Forget the watchers that these events wake, and tell whom to call with what."""
        if not self._waiting:
            return []
        return [Delivery(watcher, event) for event in events for watcher in self._take(event)]

    def _take(self, event: WatchEvent) -> dict[Watcher, None]:
        taken: dict[Watcher, None] = {}
        for kind in _KINDS_OF_EVENT[event.type]:
            taken |= dict.fromkeys(self._waiting.pop((kind, event.path), ()))
        return taken

    def __iter__(self) -> Iterator[Watch]:
        for (kind, path), known_by_watcher in self._waiting.items():
            # Later watchers know at least as much as earlier ones: whoever missed something, the first did.
            yield Watch(kind, path, next(iter(known_by_watcher.values())))

    def clear(self) -> None:
        """Forget them all: the session is over."""
        self._waiting.clear()


def missed_event(watch: Watch, current: NodeStat | None) -> WatchEvent | None:
    """What happened since the watch was set, told from the facts then and now.

    A node that was born and died meanwhile leaves no trace; as ZooKeeper after a reconnection, we are silent.
    """
    event_type = _missed_type(watch, current)
    return None if event_type is None else WatchEvent(event_type, watch.path)


def _missed_type(watch: Watch, current: NodeStat | None) -> EventType | None:
    known = watch.known
    if known is None:
        return None if current is None else EventType.CREATED
    if current is None or current.czxid != known.czxid:
        return EventType.DELETED
    if watch.kind is WatchKind.CHILDREN:
        return None if current.pzxid == known.pzxid else EventType.CHILDREN_CHANGED
    return None if current.mzxid == known.mzxid else EventType.DATA_CHANGED
