"""Partitioners other than the default one.

The default: the hash of the key as Java computes it or, without a key, one partition until it has had a full
batch, then another (KIP-794). It is in accumulator.py, since it must know when a batch is full.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Protocol


class Partitioner(Protocol):
    """A user's own partitioner; called in the thread that sends."""

    def __call__(
        self, topic: str, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int], /
    ) -> int:
        """The partition, from 0 to `partitions` - 1; those in `available` have a leader at present."""


class RoundRobinPartitioner:
    """All partitions of a topic that have a leader, one after another, whatever the key."""

    def __init__(self) -> None:
        self._counters: dict[str, itertools.count[int]] = {}

    def __call__(
        self, topic: str, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int], /
    ) -> int:
        """The next partition."""
        counter = self._counters.get(topic)
        if counter is None:
            counter = self._counters.setdefault(topic, itertools.count())
        count = next(counter)
        return available[count % len(available)] if available else count % partitions
