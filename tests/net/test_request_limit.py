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


@pytest.mark.parametrize("gate", [RequestLimit(max_requests=2), RequestLimit(max_bytes=20)])
def test_it_is_full_at_its_limit_and_wakes_whoever_was_stalled_in_turn(gate: RequestLimit) -> None:
    woken: list[str] = []
    gate.enter(10)
    assert not gate.is_full
    gate.enter(10)
    assert gate.is_full
    gate.stall("first", lambda: (woken.append("first"), gate.enter(10)))
    gate.stall("second", lambda: woken.append("second"))
    gate.stall("gone", lambda: woken.append("gone"))
    gate.forget("gone")
    gate.leave(10)
    assert woken == ["first"], "who goes on has filled it again"
    gate.leave(10)
    assert woken == ["first", "second"]


def test_a_parked_request_leaves_room_for_others() -> None:
    gate = RequestLimit(max_requests=1)
    gate.enter(5)
    with gate.parked():
        assert not gate.is_full
    assert gate.is_full


def test_no_connection_is_read_while_the_broker_has_enough_to_do() -> None:
    gate, handled = RequestLimit(max_requests=3), []

    def handle(connection: Connection, frame: memoryview, exchange: Exchange) -> None:
        gate.enter(len(frame))
        handled.append((connection, exchange))

    def answer() -> None:
        _, exchange = handled.pop(0)
        exchange.answer([framed(b"done")])
        gate.leave(1)

    async def scenario() -> None:
        listeners = [Listener(handle, gate=gate) for _ in range(2)]
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
    gate = RequestLimit(max_requests=1)
    gate.enter(0)

    async def scenario() -> None:
        listener = Listener(lambda connection, frame, exchange: None, gate=gate)
        serve(listener)
        _, writer = await asyncio.open_connection(HOST, listener.port)
        writer.write(framed(b"x"))
        while not gate._stalled:
            await asyncio.sleep(0.001)
        listener.close()
        assert not gate._stalled
        gate.leave(0)
        writer.close()

    run(scenario())
