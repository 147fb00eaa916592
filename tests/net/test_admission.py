from __future__ import annotations

import asyncio

from net.serving import serve
from odradek.net.admission import Admission, AdmissionLimits, CreationRate
from odradek.net.server import Listener, ListenerLimits


def test_limits_can_change_while_connections_are_open() -> None:
    admission = Admission()
    for _ in range(3):
        admission.opened("10.0.0.1")
    assert admission.refusal("10.0.0.1") is None
    admission.limits = AdmissionLimits(max_connections_per_ip=3)
    assert "10.0.0.1 has 3" in (admission.refusal("10.0.0.1") or "")
    assert admission.refusal("10.0.0.2") is None
    admission.closed("10.0.0.1")
    assert admission.refusal("10.0.0.1") is None
    admission.limits = AdmissionLimits(max_connections=2)
    assert "the broker has 2" in (admission.refusal("10.0.0.2") or "")


def test_a_second_takes_so_many_connections_and_no_more() -> None:
    rate = CreationRate()
    for _ in range(3):
        assert rate.wait_seconds(10.0, 3) == 0
        rate.accepted()
    assert rate.wait_seconds(10.25, 3) == 0.75
    assert rate.wait_seconds(11.0, 3) == 0


def test_connections_beyond_the_rate_wait_and_come_in_later() -> None:
    async def scenario() -> None:
        listener = Listener(lambda *_: None, limits=ListenerLimits(max_per_second=2))
        serve(listener)
        writers = [(await asyncio.open_connection("127.0.0.1", listener.port))[1] for _ in range(3)]
        while listener.connection_count < 2:
            await asyncio.sleep(0.001)
        assert listener.connection_count == 2
        while listener.connection_count < 3:
            await asyncio.sleep(0.01)
        listener.close()
        for writer in writers:
            writer.close()

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_brokers_are_let_in_beyond_the_limit_in_place_of_the_least_active_client() -> None:
    async def scenario() -> None:
        admission = Admission(AdmissionLimits(max_connections=2))
        clients = Listener(lambda *_: None, admission=admission)
        brokers = Listener(lambda *_: None, admission=admission, is_privileged=True)
        admission.close_least_active = clients.close_least_active
        serve(clients)
        serve(brokers)
        opened = []
        for count in (1, 2):
            opened.append(await asyncio.open_connection("127.0.0.1", clients.port))
            while clients.connection_count < count:
                await asyncio.sleep(0.001)

        opened.append(await asyncio.open_connection("127.0.0.1", brokers.port))
        while not brokers.connection_count:
            await asyncio.sleep(0.001)
        assert await opened[0][0].read() == b""
        assert clients.connection_count == 1
        opened.append(await asyncio.open_connection("127.0.0.1", clients.port))
        assert await opened[3][0].read() == b""
        assert clients.refused == 1

        for listener in (clients, brokers):
            listener.close()
        for _, writer in opened:
            writer.close()

    asyncio.run(asyncio.wait_for(scenario(), 20))
