from __future__ import annotations

import asyncio

import pytest

from odradek.cluster.controller.fenced_store import ControllerMoved, FencedStore
from odradek.coordination import paths
from odradek.coordination.errors import NodeExists, StoreUnavailable
from odradek.coordination.store import Create, SetData
from odradek.testing.memory_store import MemoryEnsemble


def test_writes_pass_while_the_epoch_is_ours_and_none_when_it_was_raised():
    async def scenario() -> None:
        store = MemoryEnsemble().open_session()
        await store.create(paths.CONTROLLER_EPOCH, b"1")
        fenced = FencedStore(store, epoch_version=0)
        assert await fenced.write([Create("/a"), Create("/b")]) == ["/a", "/b"]

        await store.set(paths.CONTROLLER_EPOCH, b"2")
        with pytest.raises(ControllerMoved):
            await fenced.write([Create("/c")])
        assert await store.exists("/c") is None

    asyncio.run(scenario())


def test_a_refusal_of_the_write_itself_reports_which_operation():
    async def scenario() -> None:
        store = MemoryEnsemble().open_session()
        await store.create(paths.CONTROLLER_EPOCH, b"1")
        fenced = FencedStore(store, epoch_version=0)
        with pytest.raises(NodeExists) as caught:
            await fenced.write([SetData(paths.CONTROLLER_EPOCH, b"x"), Create(paths.CONTROLLER_EPOCH)])
        assert caught.value.operation_index == 1
        assert (await store.get(paths.CONTROLLER_EPOCH)).payload == b"1"

    asyncio.run(scenario())


def test_nothing_is_written_when_unsure_or_after_the_office_was_given_up():
    async def scenario() -> None:
        store = MemoryEnsemble().open_session()
        await store.create(paths.CONTROLLER_EPOCH, b"1")
        fenced = FencedStore(store, epoch_version=0)
        store.suspend()
        with pytest.raises(StoreUnavailable):
            await fenced.write([Create("/a")])
        store.resume()
        fenced.revoke()
        with pytest.raises(ControllerMoved):
            await fenced.write([Create("/a")])
        assert await store.exists("/a") is None

    asyncio.run(scenario())
