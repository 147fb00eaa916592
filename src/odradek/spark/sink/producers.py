"""Producers of this process, kept for the next task: Spark uses a Python worker again and again.

A producer that was idle costs a connection and a thread. A worker that is killed or exits loses nothing,
because no task ends before all its rows are acknowledged.
"""

from __future__ import annotations

import atexit
import os
from typing import Any

from odradek.client.producer.producer import Producer
from odradek.spark.sink.options import SinkOptions

_MOST_KEPT = 4
_CLOSE_SECONDS = 1.0

_Key = tuple[int, tuple[tuple[str, str], ...]]
_kept: dict[_Key, Producer[bytes, bytes]] = {}


def producer_for(options: SinkOptions) -> Producer[bytes, bytes]:
    """A producer with these settings, new or kept. One task at a time runs in a worker."""
    key = _key(options)
    producer = _kept.pop(key, None)
    if producer is None:
        settings: dict[str, Any] = dict(options.producer)
        producer = Producer(**settings)
        while len(_kept) >= _MOST_KEPT:
            _close(next(iter(_kept)))
    _kept[key] = producer  # as the newest
    return producer


def drop_producer(options: SinkOptions) -> None:
    """Keep a producer no longer: after an error the next task begins with a new one."""
    _close(_key(options))


def _key(options: SinkOptions) -> _Key:
    return os.getpid(), options.producer  # a producer does not survive a fork


def _close(key: _Key) -> None:
    producer = _kept.pop(key, None)
    if producer is not None and key[0] == os.getpid():
        producer.close(_CLOSE_SECONDS)


@atexit.register
def _close_all() -> None:
    for key in list(_kept):
        _close(key)
