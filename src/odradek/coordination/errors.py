"""What can go wrong at the store, one type per reaction that a caller may have."""

from __future__ import annotations

from odradek.common.errors import OdradekError


class StoreError(OdradekError):
    """Root of everything that a store raises."""


class OperationRefused(StoreError):
    """The store answered, and the answer is no; nothing was changed.

    `operation_index` tells which operation of a `multi` was refused; 0 for a single operation.
    """

    reason = "refused"

    def __init__(self, path: str, *, operation_index: int = 0) -> None:
        self.path = path
        self.operation_index = operation_index
        super().__init__(f"{path}: {self.reason}")


class NoNode(OperationRefused):
    """The node, or the parent of a node to be created, is not there."""

    reason = "no such node"


class NodeExists(OperationRefused):
    """A node to be created is there already."""

    reason = "the node exists already"


class BadVersion(OperationRefused):
    """The node was changed since the version that the caller knows."""

    reason = "the node has another version than expected"


class NotEmpty(OperationRefused):
    """A node with children cannot be deleted."""

    reason = "the node has children"


class NoChildrenForEphemerals(OperationRefused):
    """An ephemeral node cannot have children."""

    reason = "an ephemeral node cannot have children"


class InvalidPath(OperationRefused):
    """No node can have this path; a fault of the caller."""

    reason = "not a path of a node"


class SessionExpired(StoreError):
    """The session is over: its ephemeral nodes are gone, its watches too; open a new one."""


class StoreClosed(StoreError):
    """The store was closed by its owner."""


class StoreUnavailable(StoreError):
    """The store cannot be asked at the moment, or cannot be opened; the message tells what to do."""


class ConnectionLoss(StoreUnavailable):
    """The answer got lost: the operation may or may not have happened."""


class StoreBusy(StoreUnavailable):
    """Another process has held the embedded store's write lock for too long; nothing was changed."""


class StoreFull(StoreUnavailable):
    """The disk of the embedded store is full; nothing was changed, and reading goes on."""


class StoreNotWritable(StoreUnavailable):
    """The files of the embedded store cannot be created, opened or written."""


class StoreDamaged(StoreUnavailable):
    """The file of the embedded store is damaged, or not one of ours."""


class DamagedPayload(StoreError):
    """A node holds something that nobody who follows Kafka's formats wrote."""

    def __init__(self, kind: str, problem: str) -> None:
        self.kind = kind
        self.problem = problem
        super().__init__(f"the node of the {kind} is damaged: {problem}")
