from __future__ import annotations

from odradek.cluster.control_fence import ControlFence
from odradek.common.error_codes import ErrorCode


def test_requests_of_a_former_controller_are_refused():
    fence = ControlFence(broker_epoch=5)
    assert fence.admit(controller_epoch=3, broker_epoch=5) is ErrorCode.NONE
    assert fence.admit(controller_epoch=2, broker_epoch=5) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert fence.admit(controller_epoch=3, broker_epoch=5) is ErrorCode.NONE


def test_a_request_with_a_stale_broker_epoch_is_refused_and_leaves_the_controller_epoch():
    fence = ControlFence(broker_epoch=5, controller_epoch=1)
    assert fence.admit(controller_epoch=9, broker_epoch=4) is ErrorCode.STALE_BROKER_EPOCH
    assert fence.controller_epoch == 1
    assert fence.admit(controller_epoch=2, broker_epoch=-1) is ErrorCode.NONE
