from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from odradek.coordination import paths
from odradek.coordination.payloads import ProducerIdBlock
from odradek.coordination.store import Store
from odradek.testing.memory_store import MemoryEnsemble
from odradek.transactions.producer_ids import MAX_PRODUCER_ID, ProducerIds, ProducerIdsExhausted


def a_session(ensemble: MemoryEnsemble) -> Callable[[], Store]:
    store = ensemble.open_session()
    return lambda: store


def test_no_id_is_given_twice_by_any_broker():
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        brokers = [ProducerIds(a_session(ensemble), number) for number in range(3)]
        given = await asyncio.gather(*(broker.next() for _ in range(700) for broker in brokers))
        assert len(set(given)) == 2100
        assert max(given) < 3 * 1000

    asyncio.run(scenario())


def test_a_broker_that_returns_continues_after_what_was_taken():
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        assert await ProducerIds(a_session(ensemble), 1).next() == 0
        assert await ProducerIds(a_session(ensemble), 1).next() == 1000
        node = await ensemble.open_session().get(paths.LATEST_PRODUCER_ID_BLOCK)
        assert ProducerIdBlock.decode(node.payload) == ProducerIdBlock(1, 1000, 1999)

    asyncio.run(scenario())


def test_the_end_of_all_ids_is_an_error():
    async def scenario() -> None:
        store = MemoryEnsemble().open_session()
        last = ProducerIdBlock(1, MAX_PRODUCER_ID - 999, MAX_PRODUCER_ID)
        await store.create(paths.LATEST_PRODUCER_ID_BLOCK, last.encode())
        with pytest.raises(ProducerIdsExhausted):
            await ProducerIds(lambda: store, 1).next()

    asyncio.run(scenario())
