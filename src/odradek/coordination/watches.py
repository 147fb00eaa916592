"""The watches of a session, and the events missed while it was disconnected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from odradek.coordination.store import EventType, NodeStat, Watcher, WatchEvent


class WatchKind(Enum):
    """`get` and `exists` watch the node; `children` watches the list of its children."""

    NODE = "node"
    CHILDREN = "children"


class WatchDelivery(NamedTuple):
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
    """The one-shot watches of one session. Owned by the reader of that session: one thread, no lock.

    Watchers of one place fire together; the same watcher set twice fires once.
    """

    def __init__(self) -> None:
        # The dict inside serves as an ordered set: watchers fire in the order in which they were set.
        self._waiting: dict[tuple[WatchKind, str], dict[Watcher, NodeStat | None]] = {}

    def add(self, watch: Watch, watcher: Watcher) -> None:
        """Add a watcher, until its event."""
        self._waiting.setdefault((watch.kind, watch.path), {})[watcher] = watch.known

    def trigger(self, events: Iterable[WatchEvent]) -> list[WatchDelivery]:
        """Remove the watchers of these events; returns what to call them with."""
        if not self._waiting:
            return []
        return [WatchDelivery(watcher, event) for event in events for watcher in self._take(event)]

    def _take(self, event: WatchEvent) -> dict[Watcher, None]:
        taken: dict[Watcher, None] = {}
        for kind in _KINDS_OF_EVENT[event.type]:
            taken |= dict.fromkeys(self._waiting.pop((kind, event.path), ()))
        return taken

    def __iter__(self) -> Iterator[Watch]:
        for (kind, path), known_by_watcher in self._waiting.items():
            # Later watchers have newer facts: if one missed an event, the first did.
            yield Watch(kind, path, next(iter(known_by_watcher.values())))

    def clear(self) -> None:
        """Remove them all: the session has ended."""
        self._waiting.clear()


def missed_event(watch: Watch, current: NodeStat | None) -> WatchEvent | None:
    """The event since the watch was set, derived from the facts then and now.

    A node that was created and deleted meanwhile has no event, as in ZooKeeper after a reconnection.
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
