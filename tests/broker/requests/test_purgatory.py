from __future__ import annotations

from broker.wire import a_fetch
from odradek.protocol.api_key import ApiKey

HOURS_MS = 2**31 - 1


def test_a_fetch_waits_no_longer_than_its_client_is_there(run):
    async def scenario(broker, wire):
        broker.host()
        gone = await broker.connect()
        for client in (wire, gone, gone):
            client.send(ApiKey.FETCH, 12, a_fetch("orders", max_wait_ms=HOURS_MS))
        await broker.services.wait_until(lambda: len(broker.services.waiting_fetches) == 3, patience(broker))
        gone.writer.close()
        await broker.services.wait_until(lambda: len(broker.services.waiting_fetches) == 1, patience(broker))
        assert len(broker.services.waiting_fetches) == 1

    run(scenario)


def patience(broker) -> float:
    return broker.services.loop.time() + 15
