"""The follower's side of a fetch session (KIP-227): requests name only partitions that changed. Pure.

first        session 0, epoch 0      all partitions             ->  the leader names a session
then         session s, epoch 1…     what changed, what is gone ->  only changed partitions
after errors session s, epoch 0      all partitions             ->  another session
"""

from __future__ import annotations

from typing import NamedTuple

NO_SESSION = 0
FIRST_EPOCH = 0
MAX_EPOCH = 2**31 - 1

Key = tuple[bytes, int]
"""Topic id and partition."""


class FetchPosition(NamedTuple):
    """What a fetch asks of one partition."""

    fetch_offset: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int


class FetchRequestData(NamedTuple):
    """A fetch to be sent: the session, the partitions to name, and those to remove (`forgotten`)."""

    session_id: int
    epoch: int
    named: dict[Key, FetchPosition]
    forgotten: list[Key]


class FetchSessionHandler:
    """The session with one leader; its cost per request is that of what changed. Owned by a fetcher."""

    __slots__ = ("_changed", "_forgotten", "epoch", "session_id", "wanted")

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
        self.wanted: dict[Key, FetchPosition] = {}
        self._changed: dict[Key, FetchPosition] = {}
        self._forgotten: dict[Key, None] = {}

    @property
    def has_changes(self) -> bool:
        """Whether partitions were added or changed since the last fetch was made."""
        return bool(self._changed)

    def want(self, key: Key, fetch_position: FetchPosition) -> None:
        """Fetch this partition from there on."""
        # Named and forgotten in one request, it would be forgotten.
        self._forgotten.pop(key, None)
        if self.wanted.get(key) != fetch_position:
            self.wanted[key] = self._changed[key] = fetch_position

    def forget(self, key: Key) -> None:
        """Leave this partition out."""
        if self.wanted.pop(key, None) is not None:
            self._changed.pop(key, None)
            self._forgotten[key] = None

    def next(self) -> FetchRequestData:
        """The fetch that makes the session hold exactly the wanted partitions."""
        if self.epoch == FIRST_EPOCH:
            asked = FetchRequestData(self.session_id, FIRST_EPOCH, dict(self.wanted), [])
        else:
            asked = FetchRequestData(self.session_id, self.epoch, self._changed, list(self._forgotten))
        self._changed, self._forgotten = {}, {}
        return asked

    def answered(self, session_id: int) -> None:
        """The leader accepted the fetch; without a session every fetch names all partitions."""
        if session_id == NO_SESSION:
            self.session_id, self.epoch = NO_SESSION, FIRST_EPOCH
        else:
            self.session_id = session_id
            self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def restart(self, *, is_known: bool = False) -> None:
        """The state of the session is unknown: begin another one, and close the old one if it is known."""
        if not is_known:
            self.session_id = NO_SESSION
        self.epoch = FIRST_EPOCH
