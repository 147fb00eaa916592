"""The interface of the shared store: nodes, versions, ephemerals, watches and `multi`, all as in ZooKeeper.

One `Store` is one session. It belongs to the event loop that opened it: all methods are called there,
watchers and listeners are called back there. Every store guarantees (tests/coordination/test_contract.py):

- Transactions have one order over all sessions; each has a zxid, larger than all before it.
- A watch is set by the read itself, so no change between the two is lost. It fires once, for the writes of
  its own session too, and always before its session can read the changed state. It survives SUSPENDED.
- After EXPIRED every call raises `SessionExpired`, ephemeral nodes and watches are gone, and no write of this
  session can take effect any more. Open a new store to continue.
- While SUSPENDED the session may have expired: do not rely on earlier reads. Calls wait, or
  raise `StoreUnavailable`; after `ConnectionLoss` the write may have happened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from typing import NamedTuple

from odradek.coordination.errors import NodeExists

ANY_VERSION = -1
NO_OWNER = 0


class NodeStat(NamedTuple):
    """The facts about a node, named as ZooKeeper's `Stat`."""

    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int


class Node(NamedTuple):
    """What `get` returns."""

    payload: bytes
    stat: NodeStat


class Created(NamedTuple):
    """What `create` returns: the path (with the number of a sequential node) and its facts."""

    path: str
    stat: NodeStat


class EventType(IntEnum):
    """What happened to a watched node; the numbers are ZooKeeper's."""

    CREATED = 1
    DELETED = 2
    DATA_CHANGED = 3
    CHILDREN_CHANGED = 4


class WatchEvent(NamedTuple):
    """The argument of a watcher; it does not have the new state."""

    type: EventType
    path: str


class SessionState(Enum):
    """The state of a session."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"


Watcher = Callable[[WatchEvent], None]
SessionListener = Callable[[SessionState], None]


class Create(NamedTuple):
    """Create a node; its parent must exist. A sequential one gets ten digits appended, rising per parent."""

    path: str
    payload: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


class SetData(NamedTuple):
    """Replace the payload, if the node has this version."""

    path: str
    payload: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Remove a node without children, if it has this version."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Change nothing, but refuse the whole `multi` unless the node has this version."""

    path: str
    version: int = ANY_VERSION


Operation = Create | SetData | Delete | Check
# A path for Create, the new facts for SetData, None for Delete and Check.
OperationResult = str | NodeStat | None


class Store(ABC):
    """One session at the shared store. Owned by the event loop that opened it."""

    @property
    @abstractmethod
    def session_id(self) -> int:
        """What `ephemeral_owner` of this session's ephemeral nodes says."""

    @property
    @abstractmethod
    def state(self) -> SessionState:
        """The state of the session, as last passed to the listeners."""

    @property
    @abstractmethod
    def last_contact_s(self) -> float:
        """When the store last responded, by the clock of the event loop: the session ran out no sooner than
        a session time-out after that. SUSPENDED may be noticed much later than the last contact.
        """

    @property
    @abstractmethod
    def crash_detection_ms(self) -> int:
        """How long at most the ephemeral nodes of a process remain after it was killed."""

    @abstractmethod
    def add_listener(self, listener: SessionListener) -> None:
        """Call the listener after every later change of `state`."""

    @abstractmethod
    async def create(
        self, path: str, payload: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> Created:
        """Make one node; NodeExists, NoNode (the parent), NoChildrenForEphemerals."""

    @abstractmethod
    async def get(self, path: str, watcher: Watcher | None = None) -> Node:
        """Payload and facts of a node, or NoNode (and no watch). The watcher gets its change or deletion."""

    @abstractmethod
    async def exists(self, path: str, watcher: Watcher | None = None) -> NodeStat | None:
        """Facts of a node, or None. The watcher is called when it is created, changed or deleted."""

    @abstractmethod
    async def children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        """Names of the children in order, or NoNode. The watcher is called for new and deleted children."""

    @abstractmethod
    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Do all operations in one transaction; or none, and raise the error of the first refused one."""

    @abstractmethod
    async def close(self) -> None:
        """End the session: its ephemeral nodes are removed at once. Idempotent."""

    async def set(self, path: str, payload: bytes, version: int = ANY_VERSION) -> NodeStat:
        """Replace the payload and return the new facts; NoNode, BadVersion."""
        (stat,) = await self.multi([SetData(path, payload, version)])
        assert isinstance(stat, NodeStat)
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node; NoNode, BadVersion, NotEmpty."""
        await self.multi([Delete(path, version)])

    async def ensure_path(self, path: str) -> None:
        """Create a persistent node and its parents, as far as they are missing."""
        if await self.exists(path) is not None:
            return
        parent = path.rpartition("/")[0]
        if parent:
            await self.ensure_path(parent)
        try:
            await self.create(path)
        except NodeExists:
            return
