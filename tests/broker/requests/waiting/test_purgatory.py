from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from broker.on_this_loop import until
from broker.wire import a_fetch
from odradek.broker.requests.waiting.purgatory import CommitWait, PartitionWaits, Purgatory, Waiter
from odradek.protocol.api_key import ApiKey

HOURS_MS = 2**31 - 1


def test_a_fetch_waits_no_longer_than_its_client_is_there(run):
    async def scenario(broker, wire):
        broker.host()
        gone = await broker.connect()
        for client in (wire, gone, gone):
            client.send(ApiKey.FETCH, 12, a_fetch("orders", max_wait_ms=HOURS_MS))
        await until(lambda: len(broker.services.waiting_fetches) == 3)
        gone.writer.close()
        await until(lambda: len(broker.services.waiting_fetches) == 1)

    run(scenario)


class FakeConnection:
    """What a purgatory needs of a connection."""

    peer = "a test"

    def __init__(self) -> None:
        self.at_close: dict[Any, Any] = {}
        self.reasons: list[str] = []

    def close(self, reason: str) -> None:
        self.reasons.append(reason)


class Broken(Waiter):
    """A waiter with a bug."""

    def try_complete(self) -> bool:
        raise RuntimeError("a bug")

    def on_timeout(self) -> None:
        raise RuntimeError("a bug")


class Patient(Waiter):
    """A waiter that completes when it is first tried."""

    is_complete = False

    def try_complete(self) -> bool:
        self.is_complete = True
        return True


def test_an_unexpected_error_in_one_waiter_closes_its_connection_and_does_not_stop_the_others(caplog):
    async def main() -> None:
        purgatory = Purgatory(asyncio.get_running_loop())
        connection = FakeConnection()
        broken, patient = Broken(connection), Patient()
        purgatory.add(broken, ("key",), 60_000)
        purgatory.add(patient, ("key",), 60_000)
        purgatory.wake("key")
        await asyncio.sleep(0)
        assert (len(purgatory), patient.is_complete) == (0, True)
        assert connection.reasons == ["unexpected broker error"]

    asyncio.run(main())
    assert "Unexpected error in a waiting request" in caplog.text


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=30))
def test_batches_wait_in_the_order_of_their_offsets_whatever_is_removed(steps):
    queue, model = PartitionWaits(None, 0), []
    for is_added, number in steps:
        if is_added or not model:
            wait = CommitWait(None, number, 0, None, None)
            queue.add(wait)
            model.append(wait)
            model.sort(key=lambda one: one.last_offset)
        else:
            queue.remove(model.pop(number % len(model)))
        assert queue.waits == model
