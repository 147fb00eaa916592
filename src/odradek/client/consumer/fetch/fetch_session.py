# cython: annotation_typing=False
"""The client's side of a fetch session (KIP-227): requests name only partitions that changed. No I/O.

first        session 0, epoch 0      all partitions             ->  the broker names a session
then         session s, epoch 1…     what changed, what is gone ->  only changed partitions
after errors session s, epoch 0      all partitions             ->  another session

Compiled by Cython (fetch_session.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from odradek.common.ids import TopicPartition

NO_SESSION = 0
FIRST_EPOCH = 0
MAX_EPOCH = 2**31 - 1


class PartitionFetch(NamedTuple):
    """One partition in a fetch request."""

    topic_id: bytes
    fetch_offset: int
    leader_epoch: int
    max_bytes: int


class SessionRequest(NamedTuple):
    """A fetch to be sent: the session, the partitions to name, and those to remove (`forgotten`)."""

    session_id: int
    epoch: int
    named: dict[TopicPartition, PartitionFetch]
    forgotten: dict[TopicPartition, bytes]


class FetchSessionHandler:
    """The session with one broker. Owned by the fetcher."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self._partitions: dict[TopicPartition, PartitionFetch] = {}
        self._new_offsets: dict[TopicPartition, int] = {}

    def next_request(self, wanted: Mapping[TopicPartition, PartitionFetch]) -> SessionRequest:
        """The fetch that makes the session hold exactly these partitions."""
        self._apply_new_offsets()
        if self.epoch == FIRST_EPOCH:
            self._partitions = dict(wanted)
            return SessionRequest(self.session_id, FIRST_EPOCH, self._partitions, {})
        known = self._partitions
        named = {partition: now for partition, now in wanted.items() if known.get(partition) != now}
        # A topic created again has another id: the old one is removed from the session.
        forgotten = {
            partition: before.topic_id
            for partition, before in known.items()
            if partition not in wanted or wanted[partition].topic_id != before.topic_id
        }
        self._partitions = dict(wanted)
        return SessionRequest(self.session_id, self.epoch, named, forgotten)

    def update_offset(self, partition: TopicPartition, fetch_offset: int) -> None:
        """The fetch offset of one partition has changed."""
        self._new_offsets[partition] = fetch_offset

    def _apply_new_offsets(self) -> None:
        for partition, fetch_offset in self._new_offsets.items():
            before = self._partitions[partition]
            self._partitions[partition] = PartitionFetch(
                before.topic_id, fetch_offset, before.leader_epoch, before.max_bytes
            )
        self._new_offsets.clear()

    def on_response(self, session_id: int) -> None:
        """The broker accepted the fetch; without a session every fetch names all partitions."""
        if session_id == NO_SESSION:
            self.session_id, self.epoch = NO_SESSION, FIRST_EPOCH
        else:
            self.session_id = session_id
            self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def restart(self, *, is_known: bool = True) -> None:
        """The state of the session is unknown: start a new one, and close the old one if it is known."""
        if not is_known:
            self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
