"""One broker on the running event loop, from its configuration to a clean shutdown."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from collections.abc import Callable

from odradek.broker.server import BrokerServer
from odradek.broker.settings.broker_config import BrokerConfig

ONE_SIGNAL_S = 0.5


async def serve(config: BrokerConfig, on_ready: Callable[[list[str]], None]) -> None:
    """Run a broker until a signal stops it; after a fatal error, stop it cleanly and raise the error.

    `on_ready` gets the addresses of its listeners when clients are served.
    """
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_fatal(error: Exception) -> None:
        if not failed.done():
            failed.set_exception(error)

    server = BrokerServer(config, on_fatal=on_fatal)
    stopping = asyncio.ensure_future(_stop_signal())
    starting = asyncio.ensure_future(server.start())
    await asyncio.wait((starting, stopping, failed), return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        starting.result()
        on_ready(server.addresses())
        await server.load_the_rest()
        _collect_rarely()
        await asyncio.wait((stopping, failed), return_when=asyncio.FIRST_COMPLETED)
        await server.stop()
    else:
        starting.cancel()
        await asyncio.wait((starting,))
    if failed.done():
        failed.result()


def _collect_rarely() -> None:
    """Run the garbage collector rarely: startup objects stay alive, and requests create few cycles.

    With the default thresholds, every 700 objects of a large request would start a collection.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def _stop_signal() -> None:
    """Wait for Ctrl-C or SIGTERM. A second signal terminates the process at once.

    Signals within ONE_SIGNAL_S count as one: systemd and timeout(1) signal a process and its parent, which
    passes the signal on.
    """
    received = asyncio.Event()
    loop = asyncio.get_running_loop()
    first_at: float | None = None

    def on_signal(number: int, _frame: object) -> None:
        nonlocal first_at
        if first_at is None:
            first_at = time.monotonic()
            if not loop.is_closed():
                loop.call_soon_threadsafe(received.set)
        elif time.monotonic() >= first_at + ONE_SIGNAL_S:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    # Not by the loop, which restores the default when its handler is removed: until another one is set, and
    # from the loop's end until the exit, a signal that was passed on would kill the process.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    await received.wait()
