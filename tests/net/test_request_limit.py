from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable

import pytest

from net.serving import HOST, serve
from odradek.net.connection import Connection
from odradek.net.exchange import Exchange
from odradek.net.request_limit import RequestLimit
from odradek.net.server import Listener


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def run(scenario: Awaitable[None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20))


@pytest.mark.parametrize("request_limit", [RequestLimit(max_requests=2), RequestLimit(max_bytes=20)])
def test_it_is_full_at_its_limit_and_wakes_whoever_was_stalled_in_turn(request_limit: RequestLimit) -> None:
    woken: list[str] = []
    request_limit.enter(10)
    assert not request_limit.is_full
    request_limit.enter(10)
    assert request_limit.is_full
    request_limit.stall("first", lambda: (woken.append("first"), request_limit.enter(10)))
    request_limit.stall("second", lambda: woken.append("second"))
    request_limit.stall("gone", lambda: woken.append("gone"))
    request_limit.remove("gone")
    request_limit.leave(10)
    assert woken == ["first"], "who goes on has filled it again"
    request_limit.leave(10)
    assert woken == ["first", "second"]


def test_a_parked_request_leaves_room_for_others() -> None:
    request_limit = RequestLimit(max_requests=1)
    request_limit.enter(5)
    with request_limit.parked():
        assert not request_limit.is_full
    assert request_limit.is_full


def test_no_connection_is_read_while_the_broker_has_enough_to_do() -> None:
    request_limit, handled = RequestLimit(max_requests=3), []

    def handle(connection: Connection, frame: memoryview, exchange: Exchange) -> None:
        request_limit.enter(len(frame))
        handled.append((connection, exchange))

    def answer() -> None:
        _, exchange = handled.pop(0)
        exchange.answer([framed(b"done")])
        request_limit.leave(1)

    async def scenario() -> None:
        listeners = [Listener(handle, request_limit=request_limit) for _ in range(2)]
        for listener in listeners:
            serve(listener)
        clients = [await asyncio.open_connection(HOST, one.port) for one in listeners for _ in range(2)]
        for _, writer in clients:
            writer.write(framed(b"x") * 5)
        most = answered = 0
        while answered < 20:
            await asyncio.sleep(0.001)
            most = max(most, len(handled))
            if handled:
                answer()
                answered += 1
        for reader, writer in clients:
            assert await reader.readexactly(5 * 8) == framed(b"done") * 5
            writer.close()
        assert most == 3
        for listener in listeners:
            listener.close()

    run(scenario())


def test_a_connection_that_closes_while_it_is_stalled_is_forgotten() -> None:
    request_limit = RequestLimit(max_requests=1)
    request_limit.enter(0)

    async def scenario() -> None:
        listener = Listener(lambda connection, frame, exchange: None, request_limit=request_limit)
        serve(listener)
        _, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(framed(b"x"))
        while not request_limit._stalled:
            await asyncio.sleep(0.001)
        listener.close()
        assert not request_limit._stalled
        request_limit.leave(0)
        writer.close()

    run(scenario())


CONTROL = b"\x00\x04control"
"""It begins with its API key."""


def test_control_connections_are_read_while_the_broker_has_enough_to_do() -> None:
    request_limit, handled = RequestLimit(max_requests=1), []

    def handle(connection: Connection, frame: memoryview, exchange: Exchange) -> None:
        connection.is_exempt = bytes(frame) == CONTROL
        if not connection.is_exempt:
            request_limit.enter(len(frame))
        handled.append(bytes(frame))
        exchange.answer([framed(b"done")])

    async def scenario() -> None:
        listener = Listener(handle, request_limit=request_limit, exempt_api_keys=frozenset({4}))
        serve(listener)
        _, client = await asyncio.open_connection(HOST, listener.port)
        client.write(framed(b"client"))
        while not request_limit.is_full:
            await asyncio.sleep(0.001)
        client.write(framed(b"client"))
        reader, controller = await asyncio.open_connection(HOST, listener.port)
        for _ in range(3):
            controller.write(framed(CONTROL))
            assert await reader.readexactly(8) == framed(b"done")
        _, newcomer = await asyncio.open_connection(HOST, listener.port)
        newcomer.write(framed(b"newcomer"))
        while len(request_limit._stalled) < 2:
            await asyncio.sleep(0.001)
        assert handled == [b"client", CONTROL, CONTROL, CONTROL]
        request_limit.leave(1)
        while handled[4:] != [b"client"]:
            await asyncio.sleep(0.001)
        request_limit.leave(1)
        while handled[4:] != [b"client", b"newcomer"]:
            await asyncio.sleep(0.001)
        for writer in (client, controller, newcomer):
            writer.close()
        listener.close()

    run(scenario())
