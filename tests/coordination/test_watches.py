"""Which watchers fire."""

from __future__ import annotations

import pytest

from odradek.coordination.store import EventType, NodeStat, WatchEvent
from odradek.coordination.watches import Watch, Watches, WatchKind, missed_event

STAT = NodeStat(5, 6, 7, 0, 0, 1, 2, 0, 0, 0)


def nothing(_: WatchEvent) -> None:
    pass


def something(_: WatchEvent) -> None:
    pass


def fired(watches: Watches, event_type: EventType, path: str = "/a") -> list[object]:
    return [watcher for watcher, _ in watches.trigger([WatchEvent(event_type, path)])]


def test_a_watch_fires_once_for_its_kind_and_path() -> None:
    watches = Watches()
    watches.add(Watch(WatchKind.NODE, "/a", STAT), nothing)
    watches.add(Watch(WatchKind.CHILDREN, "/a", STAT), something)

    assert fired(watches, EventType.DATA_CHANGED, "/b") == []
    assert fired(watches, EventType.DATA_CHANGED) == [nothing]
    assert fired(watches, EventType.DATA_CHANGED) == []
    assert fired(watches, EventType.CHILDREN_CHANGED) == [something]


def test_an_end_wakes_both_kinds_and_each_watcher_once() -> None:
    watches = Watches()
    for kind in WatchKind:
        watches.add(Watch(kind, "/a", STAT), nothing)
        watches.add(Watch(kind, "/a", STAT), something)
    assert fired(watches, EventType.DELETED) == [nothing, something]


@pytest.mark.parametrize(
    ("kind", "known", "current", "expected"),
    [
        (WatchKind.NODE, None, None, None),
        (WatchKind.NODE, None, STAT, EventType.CREATED),
        (WatchKind.NODE, STAT, None, EventType.DELETED),
        (WatchKind.NODE, STAT, STAT._replace(czxid=9), EventType.DELETED),
        (WatchKind.NODE, STAT, STAT._replace(mzxid=9), EventType.DATA_CHANGED),
        (WatchKind.NODE, STAT, STAT._replace(pzxid=9), None),
        (WatchKind.CHILDREN, STAT, STAT._replace(pzxid=9), EventType.CHILDREN_CHANGED),
        (WatchKind.CHILDREN, STAT, STAT._replace(mzxid=9), None),
        (WatchKind.CHILDREN, STAT, None, EventType.DELETED),
    ],
)
def test_what_was_missed_is_reported_from_the_facts(
    kind: WatchKind, known: NodeStat | None, current: NodeStat | None, expected: EventType | None
) -> None:
    event = missed_event(Watch(kind, "/a", known), current)
    assert (event.type if event else None) == expected
