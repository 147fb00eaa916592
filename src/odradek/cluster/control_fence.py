"""Rejects requests of an earlier controller, and requests for an earlier registration of this broker."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.cluster.membership.brokers import UNKNOWN_BROKER_EPOCH
from odradek.common.error_codes import ErrorCode


@dataclass(slots=True, eq=False, repr=False)
class ControlFence:
    """The highest controller epoch seen, and this broker's own epoch. Owned by the broker's event loop."""

    broker_epoch: int = UNKNOWN_BROKER_EPOCH
    controller_epoch: int = 0

    def admit(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """NONE if the request is accepted; lower controller epochs are refused then (KIP-380).

        A higher broker epoch is accepted: the controller may know of a new registration before this broker.
        """
        is_unregistered = self.broker_epoch == UNKNOWN_BROKER_EPOCH
        if is_unregistered or UNKNOWN_BROKER_EPOCH != broker_epoch < self.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = controller_epoch
        return ErrorCode.NONE
