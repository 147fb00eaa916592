from __future__ import annotations

import pytest

from odradek.cluster.control_fence import ControlFence
from odradek.common.error_codes import ErrorCode


def code(fence: ControlFence, controller_id: int, controller_epoch: int, broker_epoch: int) -> ErrorCode:
    refusal = fence.admit(controller_id, controller_epoch, broker_epoch)
    return ErrorCode.NONE if refusal is None else refusal.error_code


def test_requests_of_a_former_controller_are_refused():
    fence = ControlFence(broker_epoch=5)
    assert code(fence, 1, controller_epoch=3, broker_epoch=5) is ErrorCode.NONE
    assert code(fence, 2, controller_epoch=2, broker_epoch=5) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert code(fence, 1, controller_epoch=3, broker_epoch=5) is ErrorCode.NONE


def test_a_request_with_a_stale_broker_epoch_is_refused_and_leaves_the_controller_epoch():
    fence = ControlFence(broker_epoch=5, controller_id=1, controller_epoch=1)
    assert code(fence, 2, controller_epoch=9, broker_epoch=4) is ErrorCode.STALE_BROKER_EPOCH
    assert (fence.controller_id, fence.controller_epoch) == (1, 1)
    assert code(fence, 1, controller_epoch=2, broker_epoch=-1) is ErrorCode.NONE


def test_one_controller_epoch_has_one_controller():
    fence = ControlFence(broker_epoch=5)
    assert code(fence, 1, controller_epoch=3, broker_epoch=5) is ErrorCode.NONE
    assert code(fence, 2, controller_epoch=3, broker_epoch=5) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert code(fence, 1, controller_epoch=3, broker_epoch=5) is ErrorCode.NONE
    assert code(fence, 2, controller_epoch=4, broker_epoch=5) is ErrorCode.NONE
    assert code(fence, 1, controller_epoch=4, broker_epoch=5) is ErrorCode.STALE_CONTROLLER_EPOCH


@pytest.mark.parametrize(
    ("fence", "request_of", "reason"),
    [
        (ControlFence(), (1, 3, 5), "it is for broker epoch 5, and this broker is not registered"),
        (ControlFence(6, 1, 3), (1, 3, 5), "it is for broker epoch 5, and this broker has 6"),
        (
            ControlFence(6, 1, 3),
            (2, 2, 6),
            "its controller epoch is 2, and broker 1 is controller in epoch 3",
        ),
        (
            ControlFence(6, 1, 3),
            (2, 3, 6),
            "its controller epoch is 3, and broker 1 is controller in epoch 3",
        ),
    ],
)
def test_a_refusal_says_what_was_given_and_what_was_expected(
    fence: ControlFence, request_of: tuple[int, int, int], reason: str
):
    refusal = fence.admit(*request_of)
    assert refusal is not None
    assert refusal.reason == reason
