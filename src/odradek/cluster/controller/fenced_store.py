"""The controller's writes: each is one transaction with a check of the controller epoch."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.common.errors import OdradekError
from odradek.coordination import paths
from odradek.coordination.errors import OperationRefused, StoreUnavailable
from odradek.coordination.store import Check, Operation, OperationResult, SessionState, Store


class ControllerMoved(OdradekError):
    """Another broker has raised the controller epoch: this controller's decisions are void."""


class FencedStore:
    """Writes that succeed only while the epoch is unchanged. Owned by the controller that raised it."""

    def __init__(self, store: Store, epoch_version: int) -> None:
        self.store = store
        self._fence = Check(paths.CONTROLLER_EPOCH, epoch_version)
        self._is_revoked = False

    def revoke(self) -> None:
        """Refuse every later write: the controller resigned, maybe while it handled an event."""
        self._is_revoked = True

    async def write(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """Write everything in one transaction, or nothing; ControllerMoved if the epoch was raised.

        A refusal's `operation_index` counts the given operations.
        """
        if self._is_revoked:
            raise ControllerMoved("the controller has resigned")
        if self.store.state is not SessionState.CONNECTED:
            raise StoreUnavailable("the session may have expired: the controller does not act")
        try:
            results = await self.store.multi([self._fence, *operations])
        except OperationRefused as refusal:
            if refusal.operation_index == 0:
                raise ControllerMoved("the controller epoch was raised by another broker") from refusal
            refusal.operation_index -= 1
            raise
        return results[1:]
