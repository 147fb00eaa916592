"""What ZooKeeper's operations do to a tree of nodes, decided without touching it.

A `Draft` is one transaction over a `NodeTable`. It collects the nodes as they would be afterwards; if every
operation was accepted, the owner of the table writes `changed`; else it drops the draft and nothing is
changed. The embedded store keeps its table in SQLite, the memory store in a dict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from odradek.coordination.errors import (
    BadVersion,
    InvalidPath,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    OperationRefused,
)
from odradek.coordination.store import (
    ANY_VERSION,
    NO_OWNER,
    Check,
    Create,
    Delete,
    EventType,
    NodeStat,
    Operation,
    OperationResult,
    SetData,
    WatchEvent,
)

ROOT = "/"

# What ZooKeeper refuses inside a name: controls, surrogates with the private use area, and non-characters.
_BAD_CHARACTER = "[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]"


class Znode(NamedTuple):
    """One node of the tree.

    `children_created` counts up only: it numbers sequential children, so that no name is used twice.
    """

    payload: bytes
    czxid: int
    mzxid: int
    pzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int = 0
    children_created: int = 0
    num_children: int = 0
    ephemeral_owner: int = NO_OWNER

    def stat(self) -> NodeStat:
        """The facts in ZooKeeper's words; its cversion counts created and deleted children."""
        return NodeStat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            pzxid=self.pzxid,
            ctime_ms=self.ctime_ms,
            mtime_ms=self.mtime_ms,
            version=self.version,
            cversion=2 * self.children_created - self.num_children,
            ephemeral_owner=self.ephemeral_owner,
            data_length=len(self.payload),
            num_children=self.num_children,
        )


class NodeTable(Protocol):
    """Where the nodes are kept."""

    def find(self, path: str) -> Znode | None:
        """The node at this path."""


def parent_of(path: str) -> str:
    """The path one level up; the root is the parent of `/a`."""
    return path.rpartition("/")[0] or ROOT


def check_path(path: str) -> None:
    """Refuse what ZooKeeper refuses."""
    if path == ROOT:
        return
    names = path.split("/")
    is_absolute = len(names) > 1 and not names[0]
    # The pattern takes a millisecond to compile, and is rarely needed.
    is_plain = path.isascii() and path.isprintable()
    is_bad = not is_plain and re.search(_BAD_CHARACTER, path) is not None
    if not is_absolute or is_bad or any(name in {"", ".", ".."} for name in names[1:]):
        raise InvalidPath(path)


def check_create_path(path: str, *, sequential: bool) -> None:
    """As `check_path`; the name of a sequential node may be empty, since digits follow."""
    check_path(path + "0" if sequential else path)


def check_operations(operations: Sequence[Operation]) -> None:
    """Refuse paths before they are sent to a server, where a chroot could make them valid."""
    for index, operation in enumerate(operations):
        is_sequential = isinstance(operation, Create) and operation.sequential
        try:
            check_create_path(operation.path, sequential=is_sequential)
            if isinstance(operation, Delete):
                _check_not_root(operation.path)
        except InvalidPath as refusal:
            refusal.operation_index = index
            raise


def _check_not_root(path: str) -> None:
    if path == ROOT:
        raise InvalidPath(ROOT)


class Draft:
    """One transaction being built. Used by one thread, then dropped."""

    def __init__(self, table: NodeTable, *, zxid: int, now_ms: int, session_id: int = NO_OWNER) -> None:
        self._table = table
        self.zxid = zxid
        self._now_ms = now_ms
        self._session_id = session_id
        self.changed: dict[str, Znode | None] = {}
        self.events: list[WatchEvent] = []

    def apply_all(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Apply every operation in order, or raise the error of the first refused one."""
        results = []
        for index, operation in enumerate(operations):
            try:
                results.append(self._apply(operation))
            except OperationRefused as refusal:
                refusal.operation_index = index
                raise
        return results

    def find(self, path: str) -> Znode | None:
        """The node as this transaction would leave it."""
        if path in self.changed:
            return self.changed[path]
        return self._table.find(path)

    def remove_all(self, paths: Iterable[str]) -> None:
        """Delete the ephemeral nodes of a session that has ended."""
        for path in paths:
            self._delete(Delete(path))

    def _apply(self, operation: Operation) -> OperationResult:
        match operation:
            case Create():
                return self._create(operation)
            case SetData():
                return self._set(operation)
            case Delete():
                self._delete(operation)
            case Check():
                self._expect(operation.path, operation.version)
        return None

    def _create(self, operation: Create) -> str:
        check_create_path(operation.path, sequential=operation.sequential)
        if operation.path == ROOT and not operation.sequential:
            raise NodeExists(ROOT)
        parent_path = parent_of(operation.path)
        parent = self.find(parent_path)
        if parent is None:
            raise NoNode(operation.path)
        if parent.ephemeral_owner != NO_OWNER:
            raise NoChildrenForEphemerals(operation.path)

        path = f"{operation.path}{parent.children_created:010d}" if operation.sequential else operation.path
        if self.find(path) is not None:
            raise NodeExists(path)
        owner = self._session_id if operation.ephemeral else NO_OWNER
        zxid, now_ms = self.zxid, self._now_ms
        self.changed[path] = Znode(operation.payload, zxid, zxid, zxid, now_ms, now_ms, ephemeral_owner=owner)
        self.changed[parent_path] = parent._replace(
            pzxid=zxid,
            children_created=parent.children_created + 1,
            num_children=parent.num_children + 1,
        )
        self._add_events(EventType.CREATED, path, parent_path)
        return path

    def _set(self, operation: SetData) -> NodeStat:
        node = self._expect(operation.path, operation.version)
        node = node._replace(
            payload=operation.payload,
            mzxid=self.zxid,
            mtime_ms=self._now_ms,
            version=node.version + 1,
        )
        self.changed[operation.path] = node
        self.events.append(WatchEvent(EventType.DATA_CHANGED, operation.path))
        return node.stat()

    def _delete(self, operation: Delete) -> None:
        _check_not_root(operation.path)
        node = self._expect(operation.path, operation.version)
        if node.num_children:
            raise NotEmpty(operation.path)
        parent_path = parent_of(operation.path)
        parent = self.find(parent_path)
        assert parent is not None, f"{operation.path} has no parent"
        self.changed[operation.path] = None
        self.changed[parent_path] = parent._replace(pzxid=self.zxid, num_children=parent.num_children - 1)
        self._add_events(EventType.DELETED, operation.path, parent_path)

    def _expect(self, path: str, version: int) -> Znode:
        check_path(path)
        node = self.find(path)
        if node is None:
            raise NoNode(path)
        if version not in {ANY_VERSION, node.version}:
            raise BadVersion(path)
        return node

    def _add_events(self, event_type: EventType, path: str, parent_path: str) -> None:
        self.events += (
            WatchEvent(event_type, path),
            WatchEvent(EventType.CHILDREN_CHANGED, parent_path),
        )
