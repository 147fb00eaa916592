"""A broker in this process: an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeVar

import uvloop

from odradek.broker.server import BrokerServer
from odradek.broker.settings.load import Given, combine
from odradek.testing.errors import ClusterError

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 60

Found = TypeVar("Found")


class BrokerThread:
    """One run of a broker. One thread, the test's, calls `start`, then `stop`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        loaded = combine([Given(key, text, "Cluster") for key, text in settings.items()])
        for warning in loaded.warnings:
            logger.warning("%s", warning)
        self._config = loaded.config
        self._started: Future[list[str]] = Future()
        self._ended: Future[None] = Future()
        # A cluster that was not closed must not keep the interpreter from exiting.
        self._thread = threading.Thread(target=self._run, name="odradek-broker", daemon=True)

    def begin(self) -> None:
        """Start without waiting."""
        self._thread.start()

    def start(self) -> list[str]:
        """The addresses of its listeners, once clients are served; `begin` comes first."""
        return self._started.result(PATIENCE_SECONDS)

    def stop(self) -> None:
        """Stop in order; ClusterError if the broker had failed."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(PATIENCE_SECONDS)
        if self._thread.is_alive():
            raise ClusterError(f"the broker did not stop within {PATIENCE_SECONDS} seconds")
        self._ended.result()

    def kill(self) -> None:
        """A thread cannot be killed."""
        raise ClusterError("only a broker in a process of its own can be killed: Cluster(process=True)")

    def pause(self) -> None:
        """A thread cannot be stopped where it is."""
        raise ClusterError("only a broker in a process of its own can be paused: Cluster(process=True)")

    def resume(self) -> None:
        """A thread is never paused."""
        raise ClusterError("only a broker in a process of its own can be paused: Cluster(process=True)")

    def look(self, function: Callable[[BrokerServer], Found]) -> Found:
        """The result of a function of the broker, called on its loop."""

        async def looking() -> Found:
            return function(self._server)

        return asyncio.run_coroutine_threadsafe(looking(), self._loop).result(PATIENCE_SECONDS)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # the root of the thread: passed to the waiting caller
            waiting = self._ended if self._started.done() else self._started
            waiting.set_exception(error)
        else:
            self._ended.set_result(None)

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        failures: list[Exception] = []
        self._server = BrokerServer(self._config, on_fatal=failures.append)
        await self._server.start()
        self._started.set_result(self._server.addresses())
        await self._stopping.wait()
        await self._server.stop()
        if failures:
            raise ClusterError(f"the broker could not go on: {failures[0]}") from failures[0]
