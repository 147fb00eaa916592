"""Errors of the store, one type per reaction of callers."""

from __future__ import annotations

from odradek.common.errors import OdradekError


class StoreError(OdradekError):
    """Root of everything that a store raises."""


class OperationRefused(StoreError):
    """The store refused the operation; nothing was changed.

    `operation_index` is the operation of a `multi` that was refused; 0 for a single operation.
    """

    reason = "refused"

    def __init__(self, path: str, *, operation_index: int = 0) -> None:
        self.path = path
        self.operation_index = operation_index
        super().__init__(f"{path}: {self.reason}")


class NoNode(OperationRefused):
    """The node, or the parent of a node to be created, does not exist."""

    reason = "no such node"


class NodeExists(OperationRefused):
    """A node to be created exists already."""

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
    """The session has expired: its ephemeral nodes and watches are removed; open a new one."""


class StoreClosed(StoreError):
    """The store was closed by its owner."""


class StoreUnavailable(StoreError):
    """The store cannot be reached or opened at the moment; the message says what to do."""


class ConnectionLoss(StoreUnavailable):
    """The response was lost: the operation may or may not have happened."""


class StoreBusy(StoreUnavailable):
    """Another process has held the embedded store's write lock for too long; nothing was changed."""


class StoreFull(StoreUnavailable):
    """The disk of the embedded store is full; nothing was changed, and reads still work."""


class StoreNotWritable(StoreUnavailable):
    """The files of the embedded store cannot be created, opened or written."""


class StoreDamaged(StoreUnavailable):
    """The file of the embedded store is damaged, or not one of ours."""


class StoreAccessDenied(StoreUnavailable):
    """The store does not let this process do it, by an ACL or for want of a login; nothing was changed."""


class DamagedPayload(StoreError):
    """A node's payload does not follow Kafka's formats."""

    def __init__(self, kind: str, problem: str) -> None:
        self.kind = kind
        self.problem = problem
        super().__init__(f"the node of the {kind} is damaged: {problem}")
