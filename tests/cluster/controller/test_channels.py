from __future__ import annotations

import asyncio

import pytest

from cluster.virtual_time import run_in_virtual_time
from odradek.cluster.controller.channels import BrokerChannel, Channels, DeliveryFailed, LocalChannel
from odradek.cluster.controller.events import ControlResponse
from odradek.cluster.controller.requests import ControlRequest
from odradek.cluster.membership.brokers import Broker
from odradek.common.error_codes import ErrorCode
from odradek.protocol.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)


def a_request(number: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_epoch=number)


class Recorder:
    """A broker that notes the requests that reach it; it fails as often as told."""

    def __init__(self, failures: int = 0) -> None:
        self.got: list[int] = []
        self.failures = failures
        self.under_way = 0
        self.is_closed = False

    async def send(self, request: ControlRequest) -> ControlResponse:
        assert self.under_way == 0, "two requests at a time"
        self.under_way += 1
        await asyncio.sleep(0.01)
        self.under_way -= 1
        if self.failures:
            self.failures -= 1
            raise DeliveryFailed("as configured")
        self.got.append(request.controller_epoch)
        if request.controller_epoch == 99:
            raise RuntimeError("a bug")
        return UpdateMetadataResponse()

    async def close(self) -> None:
        self.is_closed = True


async def open_channels(**ways: BrokerChannel) -> tuple[Channels, list[tuple[int, int]]]:
    answered: list[tuple[int, int]] = []
    numbered = {int(name.removeprefix("broker")): way for name, way in ways.items()}
    channels = Channels(
        lambda broker: numbered[broker.broker_id],
        lambda broker_id, request, _: answered.append((broker_id, request.controller_epoch)),
    )
    for broker_id in numbered:
        channels.add(Broker(broker_id))
    return channels, answered


def test_requests_arrive_in_order_one_at_a_time_and_again_until_they_do():
    async def scenario() -> None:
        slow, quick = Recorder(failures=3), Recorder()
        channels, answered = await open_channels(broker1=slow, broker2=quick)
        for number in range(5):
            channels.send(1, a_request(number))
        channels.send(2, a_request(7))
        channels.send(3, a_request(8))
        await asyncio.sleep(5)

        assert slow.got == [0, 1, 2, 3, 4]
        assert answered == [(2, 7), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]
        await channels.close()
        assert slow.is_closed
        assert quick.is_closed

    run_in_virtual_time(scenario())


def test_nothing_is_sent_while_paused_or_after_removal():
    async def scenario() -> None:
        recorder = Recorder()
        channels, _ = await open_channels(broker1=recorder)
        channels.pause()
        channels.send(1, a_request(1))
        await asyncio.sleep(1)
        assert recorder.got == []
        channels.resume()
        await asyncio.sleep(1)
        assert recorder.got == [1]

        channels.pause()
        channels.send(1, a_request(2))
        channels.remove(1)
        channels.resume()
        await asyncio.sleep(1)
        assert recorder.got == [1]
        await channels.close()

    run_in_virtual_time(scenario())


def test_a_request_that_breaks_the_receiver_is_dropped_and_the_next_one_sent(caplog):
    async def scenario() -> None:
        recorder = Recorder()
        channels, answered = await open_channels(broker1=recorder)
        channels.send(1, a_request(99))
        channels.send(1, a_request(1))
        await asyncio.sleep(1)
        assert answered == [(1, 1)]
        await channels.close()

    run_in_virtual_time(scenario())
    assert "a bug" in caplog.text


def test_our_own_broker_finishes_what_it_has_begun():
    async def scenario() -> None:
        recorder = Recorder()
        lock = asyncio.Lock()

        async def handle(request: ControlRequest) -> ControlResponse:
            async with lock:
                return await recorder.send(request)

        local = LocalChannel(handle)
        sending = asyncio.create_task(local.send(a_request(1)))
        await asyncio.sleep(0.001)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        # Asks again at once, as the channel of a next term would: it waits for the lock.
        await local.send(a_request(2))
        assert recorder.got == [1, 2]

    run_in_virtual_time(scenario())


class SlowDisk(Recorder):
    """Answers LeaderAndIsr late, and STALE_BROKER_EPOCH twice before it knows its own epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []
        self.refusals = 2

    async def send(self, request: ControlRequest) -> ControlResponse:
        if isinstance(request, LeaderAndIsrRequest):
            await asyncio.sleep(10)
            self.order.append("replicas")
            return LeaderAndIsrResponse()
        self.order.append("metadata")
        if self.refusals:
            self.refusals -= 1
            return UpdateMetadataResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        return UpdateMetadataResponse()


def test_metadata_does_not_wait_for_disks_and_is_sent_again_while_the_broker_does_not_know_its_epoch():
    async def scenario() -> None:
        broker = SlowDisk()
        channels, answered = await open_channels(broker1=broker)
        channels.send(1, LeaderAndIsrRequest(controller_epoch=4))
        channels.send(1, a_request(5))
        await asyncio.sleep(5)
        assert answered == [(1, 5)]
        await asyncio.sleep(10)
        assert answered == [(1, 5), (1, 4)]
        assert broker.order == ["metadata"] * 3 + ["replicas"]
        await channels.close()

    run_in_virtual_time(scenario())
