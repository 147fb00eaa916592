"""Rejects requests of an earlier controller, and requests for an earlier registration of this broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from odradek.cluster.membership.brokers import UNKNOWN_BROKER_EPOCH
from odradek.cluster.metadata import NO_CONTROLLER
from odradek.common.error_codes import ErrorCode


class Refusal(NamedTuple):
    """Why a control request is not applied: the error for its sender, and the values that do not match."""

    error_code: ErrorCode
    reason: str


@dataclass(slots=True, eq=False, repr=False)
class ControlFence:
    """The newest controller, and this broker's own epoch. Owned by the broker's event loop."""

    broker_epoch: int = UNKNOWN_BROKER_EPOCH
    controller_id: int = NO_CONTROLLER
    controller_epoch: int = 0

    @property
    def is_registered(self) -> bool:
        """Whether this broker knows its own epoch; until then every request is refused."""
        return self.broker_epoch != UNKNOWN_BROKER_EPOCH

    def admit(self, controller_id: int, controller_epoch: int, broker_epoch: int) -> Refusal | None:
        """None if the request is accepted; lower controller epochs are refused then (KIP-380).

        A higher broker epoch is accepted: the controller may know of a new registration before this broker.
        A controller epoch belongs to the broker from which it was first heard of.
        """
        if not self.is_registered or UNKNOWN_BROKER_EPOCH != broker_epoch < self.broker_epoch:
            own = f"has {self.broker_epoch}" if self.is_registered else "is not registered"
            return Refusal(
                ErrorCode.STALE_BROKER_EPOCH, f"it is for broker epoch {broker_epoch}, and this broker {own}"
            )
        is_another = self.controller_id not in (NO_CONTROLLER, controller_id)
        if controller_epoch < self.controller_epoch or (
            controller_epoch == self.controller_epoch and is_another
        ):
            return Refusal(
                ErrorCode.STALE_CONTROLLER_EPOCH,
                f"its controller epoch is {controller_epoch}, and broker {self.controller_id} is controller "
                f"in epoch {self.controller_epoch}",
            )
        self.controller_id = controller_id
        self.controller_epoch = controller_epoch
        return None
