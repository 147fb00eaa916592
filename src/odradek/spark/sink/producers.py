"""Producers of this process, kept for the next task: Spark uses a Python worker again and again.

A producer that was idle costs a connection and a thread. A worker that is killed or exits loses nothing,
because no task ends before all its rows are acknowledged.
"""

from __future__ import annotations

import atexit
import os
from typing import Any

from odradek.client.producer.producer import Producer

_MOST_KEPT = 4
_CLOSE_SECONDS = 1.0

Settings = tuple[tuple[str, str], ...]
"""Keyword and text of each setting of a producer, sorted."""

_Key = tuple[int, Settings]
_kept: dict[_Key, Producer[bytes, bytes]] = {}


def producer_for(wanted: Settings) -> Producer[bytes, bytes]:
    """A producer with these settings, new or kept. One task at a time runs in a worker."""
    key = _key(wanted)
    producer = _kept.pop(key, None)
    if producer is None:
        settings: dict[str, Any] = dict(wanted)
        producer = Producer(**settings)
        while len(_kept) >= _MOST_KEPT:
            _close(next(iter(_kept)))
    _kept[key] = producer  # as the newest
    return producer


def drop_producer(wanted: Settings) -> None:
    """Keep a producer no longer: after an error the next task begins with a new one."""
    _close(_key(wanted))


def _key(wanted: Settings) -> _Key:
    return os.getpid(), wanted  # a producer does not survive a fork


def _close(key: _Key) -> None:
    producer = _kept.pop(key, None)
    if producer is not None and key[0] == os.getpid():
        producer.close(_CLOSE_SECONDS)


@atexit.register
def _close_all() -> None:
    for key in list(_kept):
        _close(key)
