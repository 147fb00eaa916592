"""Requests to the controller while it moves, resigns, or is this broker."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from cluster.virtual_time import run_in_virtual_time
from odradek.cluster.controller_channel import ControllerChannel
from odradek.common.error_codes import ErrorCode
from odradek.net.broker_connection import RequestFailed
from odradek.protocol.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.structs import Message

REQUEST = AllocateProducerIdsRequest(broker_id=1)


class Network:
    """Brokers that answer what is prepared for them; None never answers."""

    def __init__(self) -> None:
        self.answers: dict[int, list[ErrorCode | None]] = {}
        self.asked: list[int] = []
        self._waiting: dict[int, asyncio.Future[Message]] = {}

    async def send(self, broker_id: int, request: Message, *, timeout_s: float, **_: Any) -> Message:
        self.asked.append(broker_id)
        answers = self.answers.get(broker_id)
        if answers is None:
            await asyncio.sleep(0.01)
            raise RequestFailed(f"broker {broker_id}", "cannot connect")
        answer = answers.pop(0)
        if answer is not None:
            return AllocateProducerIdsResponse(error_code=answer, producer_id_start=broker_id)
        self._waiting[broker_id] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout_s):
                return await self._waiting[broker_id]
        except TimeoutError:
            raise RequestFailed(f"broker {broker_id}", "no response") from None

    def forget(self, broker_id: int, purpose: str) -> None:
        waiting = self._waiting.get(broker_id)
        if waiting is not None:
            waiting.set_exception(RequestFailed(f"broker {broker_id}", "closed here"))


class Place:
    """Where the controller is."""

    def __init__(self, controller_id: int | None) -> None:
        self.controller_id = controller_id
        self.network = Network()
        self.channel = ControllerChannel(
            1, lambda: self.controller_id, cast(Any, self.network), self._handle_here
        )

    async def _handle_here(self, request: Message) -> Message:
        return await self.network.send(1, request, timeout_s=60)

    async def ask(self, timeout_s: float = 30) -> AllocateProducerIdsResponse:
        response = await self.channel.send(REQUEST, timeout_s=timeout_s)
        assert isinstance(response, AllocateProducerIdsResponse)
        return response


def test_a_controller_that_has_resigned_is_asked_again_until_there_is_another():
    async def scenario() -> None:
        place = Place(2)
        place.network.answers = {2: [ErrorCode.NOT_CONTROLLER] * 100, 3: [ErrorCode.NONE]}

        def move() -> None:
            place.controller_id = 3

        asyncio.get_running_loop().call_later(0.2, move)
        assert (await place.ask()).producer_id_start == 3
        assert place.network.asked[0] == 2

    run_in_virtual_time(scenario())


def test_a_request_that_waits_for_a_former_controller_goes_to_the_next_one():
    async def scenario() -> None:
        place = Place(2)
        place.network.answers = {2: [None], 3: [ErrorCode.NONE]}
        asking = asyncio.create_task(place.ask())
        await asyncio.sleep(1)
        place.controller_id = 3
        place.channel.controller_changed()
        assert (await asking).producer_id_start == 3
        assert asyncio.get_running_loop().time() < 2
        assert place.network.asked == [2, 3]

    run_in_virtual_time(scenario())


def test_this_broker_answers_itself_while_it_is_the_controller():
    async def scenario() -> None:
        place = Place(1)
        place.network.answers = {1: [ErrorCode.NONE, None]}
        assert (await place.ask()).producer_id_start == 1
        with pytest.raises(RequestFailed, match="no response within 2 s"):
            await place.ask(timeout_s=2)

    run_in_virtual_time(scenario())


@pytest.mark.parametrize(("controller_id", "reason"), [(None, "none is elected"), (7, "cannot connect")])
def test_without_a_controller_the_request_fails_at_its_deadline(controller_id, reason):
    async def scenario() -> None:
        place = Place(controller_id)
        with pytest.raises(RequestFailed, match=reason):
            await place.ask(timeout_s=3)
        assert 2.9 < asyncio.get_running_loop().time() <= 3.1

    run_in_virtual_time(scenario())


def test_other_errors_are_for_the_caller():
    async def scenario() -> None:
        place = Place(2)
        place.network.answers = {2: [ErrorCode.STALE_BROKER_EPOCH]}
        assert (await place.ask()).error_code == ErrorCode.STALE_BROKER_EPOCH

    run_in_virtual_time(scenario())
