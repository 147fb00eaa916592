"""A real broker in a simulated process: its own code, over a simulated network, disk, store and clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from odradek.broker.background.io_threads import IoThreads
from odradek.broker.environment import BrokerEnvironment
from odradek.broker.server import BrokerServer
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.load import Given, combine
from odradek.coordination.store import SessionState
from odradek.testing.memory_store import MemoryEnsemble, MemoryStore
from odradek.testing.simulation.disks import SimulatedDisk
from odradek.testing.simulation.network import SimulatedNetwork
from odradek.testing.simulation.servers import SimulatedListener
from odradek.testing.simulation.virtual_time import SimulatedProcess

Result = TypeVar("Result")

PORT = 9092
LONGEST_DISK_DELAY_S = 0.1
LARGEST_CLOCK_SKEW_MS = 30_000
"""By how much the clock of a broker may be early or late."""


class _SlowThreads(IoThreads):
    """Does the work of a pool some milliseconds later, so that other things happen before and after it."""

    def __init__(self, count: int, seeded: random.Random) -> None:
        self.count = count
        self._seeded = seeded

    def submit(self, function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Call the function later, in the process that has submitted it."""
        future: Future[Result] = Future()
        delay_s = self._seeded.random() ** 4 * LONGEST_DISK_DELAY_S
        asyncio.get_running_loop().call_later(delay_s, self._run, future, lambda: function(*args, **kwargs))
        return future

    def _run(self, future: Future[Result], function: Callable[[], Result]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(function())
        except Exception as error:  # a task root: the caller gets the error with the result
            future.set_exception(error)

    def resize(self, count: int) -> None:
        """The number of threads makes no difference."""
        self.count = count

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing is left."""


class SimulatedBroker:
    """One broker over all its restarts. Owned by the simulation; its methods are called outside of processes.

    `process` and `server` are those of the present run, None while it is down.
    """

    def __init__(
        self,
        broker_id: int,
        *,
        directory: Path,
        network: SimulatedNetwork,
        ensemble: MemoryEnsemble,
        seeded: random.Random,
        settings: Mapping[str, str],
    ) -> None:
        self.broker_id = broker_id
        self.host = f"broker-{broker_id}"
        self.disk = SimulatedDisk(directory)
        self.network = network
        self.ensemble = ensemble
        self.seeded = seeded
        self.settings = dict(settings)
        self.process: SimulatedProcess | None = None
        self.server: BrokerServer | None = None
        self.session: MemoryStore | None = None
        self.starting: asyncio.Task[None] | None = None
        self.failure: Exception | None = None

    @property
    def is_up(self) -> bool:
        """Whether its process exists, stopped or not."""
        return self.process is not None

    def start(self, clock_skew_ms: int = 0) -> asyncio.Task[None]:
        """Start the broker; the task ends when the broker is ready."""
        assert self.process is None, "it is running"
        self.process = SimulatedProcess(self.host, clock_skew_ms)
        self.starting = self.process.create_task(self._serve(self.process))
        return self.starting

    async def _serve(self, process: SimulatedProcess) -> None:
        server = BrokerServer(
            self._config(),
            clock=process,
            files=self.disk,
            environment=BrokerEnvironment(
                open_store=self._open_store,
                make_threads=lambda count: _SlowThreads(count, self.seeded),
                make_listener=lambda handle, **limits: SimulatedListener(self.network, handle, **limits),
            ),
            on_fatal=self._failed,
        )
        self.server = server
        await server.start()

    def _config(self) -> BrokerConfig:
        given = {
            "broker.id": str(self.broker_id),
            "log.dirs": str(self.disk.root),
            "listeners": f"PLAINTEXT://{self.host}:{PORT}",
            "odradek.allow.unauthenticated": "true",
            "odradek.coordination": f"sqlite:{self.disk.root}/unused",
            "log.cleaner.enable": "false",
            **self.settings,
        }
        return combine([Given(key, text, "simulation") for key, text in given.items()]).config

    async def _open_store(self, config: BrokerConfig) -> MemoryStore:
        await asyncio.sleep(self.seeded.random() / 100)
        self.session = self.ensemble.open_session()
        return self.session

    def _failed(self, error: Exception) -> None:
        self.failure = error

    @property
    def is_healthy(self) -> bool:
        """Whether it is ready, and neither stopped nor without its session."""
        ready = self.starting is not None and self.starting.done()
        return self.process is not None and ready and not self.process.is_stopped

    def pause(self, session_timeout_s: float) -> None:
        """Let nothing of it run until `resume` (SIGSTOP); its session expires after this time."""
        process = self.process
        assert process is not None
        process.stop()

        def expire() -> None:
            if process is self.process and process.is_stopped:
                self.expire_session()

        asyncio.get_running_loop().call_later(session_timeout_s, expire)

    def resume(self) -> None:
        """Let it go on (SIGCONT), if it still exists."""
        if self.process is not None and self.process.is_stopped:
            self.process.resume()

    def expire_session(self) -> None:
        """The store ends the session; the broker is notified when it runs."""
        process, session = self.process, self.session
        if process is not None and session is not None and session.state is not SessionState.EXPIRED:
            self.ensemble.drop_session(session)
            process.call_soon(session.expire)

    def suspend_session(self) -> None:
        """Let the broker lose contact with the store."""
        if self.process is not None and self.session is not None:
            self.process.call_soon(self.session.suspend)

    def end_suspension(self, *, is_expired: bool) -> None:
        """Let it have contact again, or let the session expire."""
        if is_expired:
            self.expire_session()
        elif self.process is not None and self.session is not None:
            self.process.call_soon(self.session.resume)

    def kill(self, *, power_cut: bool = False) -> None:
        """Let the process die at this moment, and its session with it. A power cut loses unsynced data."""
        process = self._end_process()
        process.kill()
        self.network.process_died(process)
        if power_cut:
            self.disk.cut_power(self.seeded)

    async def stop(self) -> None:
        """Let the broker stop in order, as by SIGTERM."""
        process, server = self.process, self.server
        assert process is not None
        assert server is not None
        await process.create_task(server.stop())
        self._end_process().kill()
        self.network.process_died(process)

    def _end_process(self) -> SimulatedProcess:
        process, server, session = self.process, self.server, self.session
        assert process is not None
        self.process = self.server = self.session = None
        if server is not None and server.logs is not None:
            server.logs.abandon()  # the kernel releases the locks of a dead process
        if session is not None:
            self.ensemble.drop_session(session)
        return process
