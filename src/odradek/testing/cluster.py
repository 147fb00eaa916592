"""A real broker for a test, on a free port of 127.0.0.1, gone with everything it wrote when the test is over.

with Cluster(num_partitions=3) as c:
    producer = Producer({"bootstrap.servers": c.bootstrap})
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from odradek.common.errors import ConfigError
from odradek.testing.errors import ClusterError

if TYPE_CHECKING:
    from odradek.broker.server import BrokerServer

__all__ = ["Cluster", "ClusterError", "Setting"]

ANY_PORT = "PLAINTEXT://127.0.0.1:0"

Setting = str | int | float | bool
Found = TypeVar("Found")


class BrokerRun(Protocol):
    """A broker from one start to its stop: broker_thread.py, broker_process.py."""

    def start(self) -> list[str]:
        """The addresses of its listeners, once clients are served."""

    def stop(self) -> None:
        """Stop in order."""

    def kill(self) -> None:
        """Kill it."""

    def look(self, function: Callable[[BrokerServer], Found]) -> Found:
        """The result of a function of the broker."""


class Cluster:
    """One broker, in a thread of this process or (`process=True`) in a process of its own.

    Settings are the broker's, by Kafka's name in a mapping (`{"num.partitions": 3}`) or in Python case as
    keywords (`num_partitions=3`). It is the broker that `odradek start` runs, on the embedded store, with
    these differences, each of which you can set back:

    | setting | here | what you could notice |
    | --- | --- | --- |
    | `listeners` | `PLAINTEXT://127.0.0.1:0` | a free port, which stays the same over restarts |
    | `log.dirs` | a new directory | `close` removes it; `data_dir=PATH` names yours, which stays |
    | `odradek.coordination` | `sqlite:…?synchronous=off` | topics survive a kill, but no power cut |
    | `group.initial.rebalance.delay.ms` | 0, not 3000 | a group's first member does not wait for others |
    | `offsets.topic.num.partitions` | 1, not 50 | the first group is there 0.3 s earlier |

    Use it as a context manager, also an asynchronous one, or call `start` and `close`. One thread owns it.
    """

    def __init__(
        self,
        settings: Mapping[str, Setting] | None = None,
        *,
        process: bool = False,
        brokers: int = 1,
        data_dir: str | os.PathLike[str] | None = None,
        **keywords: Setting,
    ) -> None:
        if brokers != 1:
            raise ConfigError(f"brokers={brokers}: a cluster of a test has one broker, so far")
        self._in_process = not process
        self._given_data_dir = None if data_dir is None else Path(data_dir)
        named = {name.replace("_", "."): value for name, value in keywords.items()}
        self._given = {key: _text(value) for key, value in {**(settings or {}), **named}.items()}
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._run: BrokerRun | None = None
        self._addresses: list[str] = []

    @property
    def bootstrap(self) -> str:
        """`host:port` for a client's `bootstrap.servers`; the same after a restart."""
        if not self._addresses:
            raise ClusterError("the cluster was not started")
        return self._addresses[0]

    @property
    def data_dir(self) -> Path:
        """Where the broker keeps its log and the embedded store."""
        return self._given_data_dir or self._own_directory / "data"

    def start(self) -> None:
        """Return when clients are served."""
        if self._run is not None:
            raise ClusterError("the cluster runs already")
        self._run = life = self._make_run()
        try:
            self._addresses = life.start()
        except BaseException:
            self._run = None
            raise

    def stop(self) -> None:
        """Stop the broker in order and keep its data, for `start`; nothing to do if it does not run."""
        life, self._run = self._run, None
        if life is not None:
            life.stop()

    def restart(self) -> None:
        """Stop the broker, unless it was killed, and start it on the same data and port."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """Kill the broker's process; `restart` starts it again."""
        if self._run is None:
            raise ClusterError("the cluster does not run")
        self._run.kill()
        self.stop()

    def look(self, function: Callable[[BrokerServer], Found]) -> Found:
        """The result of a function of the broker of this process, called on its loop."""
        if self._run is None:
            raise ClusterError("the cluster does not run")
        return self._run.look(function)

    def close(self) -> None:
        """Stop the broker and remove what it wrote."""
        try:
            self.stop()
        finally:
            if self._directory is not None:
                self._directory.cleanup()
                self._directory = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    @property
    def _own_directory(self) -> Path:
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="odradek-")
        return Path(self._directory.name)

    def _settings(self) -> dict[str, str]:
        return {
            "log.dirs": str(self.data_dir),
            "listeners": f"PLAINTEXT://{self._addresses[0]}" if self._addresses else ANY_PORT,
            "odradek.coordination": f"sqlite:{self.data_dir / 'coordination.db'}?synchronous=off",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            **self._given,
        }

    def _make_run(self) -> BrokerRun:
        # Each kind imports only what it needs: a broker in its own process needs few imports here.
        if self._in_process:
            from odradek.testing.broker_thread import BrokerThread  # noqa: PLC0415

            return BrokerThread(self._settings())
        from odradek.testing.broker_process import BrokerProcess  # noqa: PLC0415

        return BrokerProcess(self._settings(), self._own_directory / "broker.log")


def _text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
