"""Waiting for a ZooKeeper that does not answer, which needs none."""

from __future__ import annotations

import asyncio
import socket

import pytest

from odradek.coordination.errors import StoreUnavailable
from odradek.coordination.zookeeper import ZooKeeperStore

FOR_EVER_MS = 600_000
NOBODY_THERE = "127.0.0.1:1"


@pytest.mark.parametrize("chroot", ["", "/odradek"])
def test_waiting_for_a_server_ends_when_it_is_cancelled(chroot: str) -> None:
    async def open_and_cancel() -> None:
        opening = asyncio.create_task(
            ZooKeeperStore.open(NOBODY_THERE + chroot, connection_timeout_ms=FOR_EVER_MS)
        )
        await asyncio.sleep(0.05)  # it has tried, and tries again
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    # At its end the loop waits for the threads that work for it.
    asyncio.run(open_and_cancel())


def test_waiting_for_one_that_is_silent_ends_when_it_is_cancelled() -> None:
    async def open_and_cancel(silent: socket.socket) -> None:
        hosts = f"127.0.0.1:{silent.getsockname()[1]}"
        opening = asyncio.create_task(ZooKeeperStore.open(hosts, connection_timeout_ms=FOR_EVER_MS))
        connection, _ = await asyncio.get_running_loop().sock_accept(silent)
        opening.cancel()
        with connection, pytest.raises(asyncio.CancelledError):
            await opening

    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        asyncio.run(open_and_cancel(silent))


@pytest.mark.parametrize("chroot", ["", "/odradek"])
def test_it_is_waited_for_no_longer_than_configured(chroot: str) -> None:
    async def open_it() -> None:
        with pytest.raises(StoreUnavailable, match=r"no ZooKeeper answered at 127\.0\.0\.1:1 within 50 ms"):
            await ZooKeeperStore.open(NOBODY_THERE + chroot, connection_timeout_ms=50)

    asyncio.run(open_it())
