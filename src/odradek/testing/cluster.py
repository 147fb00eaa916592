"""Real brokers for a test, on free ports of 127.0.0.1, gone with everything they wrote when the test is over.

with Cluster(num_partitions=3) as c:
    producer = Producer({"bootstrap.servers": c.bootstrap})

with Cluster(brokers=3) as c:
    c.kill(0)
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from odradek.common.errors import ConfigError
from odradek.testing.errors import ClusterError
from odradek.testing.live_brokers import live_brokers

if TYPE_CHECKING:
    from odradek.broker.server import BrokerServer
    from odradek.testing.forked_brokers import BrokerStarter

__all__ = ["Cluster", "ClusterError", "Setting"]

ANY_PORT = "PLAINTEXT://127.0.0.1:0"
PATIENCE_SECONDS = 60

Setting = str | int | float | bool
Found = TypeVar("Found")


class BrokerRun(Protocol):
    """A broker from one start to its stop: broker_thread.py, broker_process.py, forked_brokers.py."""

    def begin(self) -> None:
        """Start without waiting."""

    def start(self) -> list[str]:
        """The addresses of its listeners, once clients are served; `begin` comes first."""

    def stop(self) -> None:
        """Stop in order."""

    def kill(self) -> None:
        """Kill it."""

    def pause(self) -> None:
        """Stop its process where it is."""

    def resume(self) -> None:
        """Let a paused process go on."""

    def look(self, function: Callable[[BrokerServer], Found]) -> Found:
        """The result of a function of the broker."""


class Cluster:
    """One broker, in a thread of this process or (`process=True`) in a process; or several processes.

    Settings are the broker's, by Kafka's name in a mapping (`{"num.partitions": 3}`) or in Python case as
    keywords (`num_partitions=3`). They are the brokers that `odradek start` runs, on the embedded store, with
    these differences, each of which you can set back:

    | setting | here | what you could notice |
    | --- | --- | --- |
    | `listeners` | `PLAINTEXT://127.0.0.1:0` | a free port, which stays the same over restarts |
    | `log.dirs` | a new directory | `close` removes it; `data_dir=PATH` names yours, which stays |
    | `odradek.coordination` | `sqlite:…?synchronous=off` | topics survive a kill, but no power cut |
    | `group.initial.rebalance.delay.ms` | 0, not 3000 | a group's first member does not wait for others |
    | `offsets.topic.num.partitions` | 1, not 50 | the first group is there 0.3 s earlier |

    Use it as a context manager, also an asynchronous one, or call `start` and `close`. One thread owns it.
    Several brokers have the ids 0, 1, ...; methods that take an id are for all brokers without one.
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
        if brokers < 1:
            raise ConfigError(f"brokers={brokers}: a cluster has at least one")
        self.broker_ids = range(brokers)
        self._in_process = not process and brokers == 1
        self._given_data_dir = None if data_dir is None else Path(data_dir)
        named = {name.replace("_", "."): value for name, value in keywords.items()}
        self._given = {key: _text(value) for key, value in {**(settings or {}), **named}.items()}
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._runs: dict[int, BrokerRun] = {}
        self._addresses: dict[int, list[str]] = {}
        self._starter: BrokerStarter | None = None

    @property
    def bootstrap(self) -> str:
        """`host:port,...` for a client's `bootstrap.servers`; the same after a restart."""
        return ",".join(self._address(broker_id) for broker_id in self.broker_ids)

    def address(self, broker_id: int = 0) -> str:
        """`host:port` of one broker."""
        return self._address(broker_id)

    def _address(self, broker_id: int) -> str:
        if broker_id not in self._addresses:
            raise ClusterError("the cluster was not started")
        return self._addresses[broker_id][0]

    @property
    def data_dir(self) -> Path:
        """Where one broker keeps its log, and several have a directory each; the store is here, too."""
        return self._given_data_dir or self._own_directory / "data"

    def broker_dir(self, broker_id: int = 0) -> Path:
        """The log directory of one broker."""
        return self.data_dir if len(self.broker_ids) == 1 else self.data_dir / f"broker-{broker_id}"

    def start(self, broker_id: int | None = None) -> None:
        """Return when clients are served, and every running broker is in the metadata of all."""
        chosen = self._chosen(broker_id)
        if any(one in self._runs for one in chosen):
            raise ClusterError(
                "the cluster runs already" if broker_id is None else f"{_name(broker_id)} runs"
            )
        begun = {one: self._make_run(one) for one in chosen}
        for run in begun.values():
            run.begin()
        try:
            for one, run in begun.items():
                self._addresses[one] = run.start()
                self._runs[one] = run
            if len(self.broker_ids) > 1:
                self._wait_for_metadata()
        except BaseException:
            for one, run in begun.items():
                self._runs.pop(one, None)
                if len(self.broker_ids) > 1:
                    run.kill()
            raise

    def stop(self, broker_id: int | None = None) -> None:
        """Stop brokers in order and keep their data, for `start`; nothing to do for one that does not run."""
        runs = [self._runs.pop(one) for one in self._chosen(broker_id) if one in self._runs]
        errors = []
        for run in runs:
            try:
                run.stop()
            except ClusterError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def restart(self, broker_id: int | None = None) -> None:
        """Stop brokers, unless they were killed, and start them on the same data and ports."""
        self.stop(broker_id)
        self.start(broker_id)

    def kill(self, broker_id: int | None = None) -> None:
        """Kill the process of a broker, or of all; `restart` starts it again."""
        for one in self._chosen(broker_id):
            self._run(one).kill()
            self._runs.pop(one).stop()

    def pause(self, broker_id: int) -> None:
        """Stop a process where it is (SIGSTOP): its session expires if it stays so."""
        self._run(broker_id).pause()

    def resume(self, broker_id: int) -> None:
        """Let a paused process go on (SIGCONT)."""
        self._run(broker_id).resume()

    def wipe(self, broker_id: int) -> None:
        """Remove the log directory of a broker that does not run: its disk was replaced by an empty one."""
        if broker_id in self._runs:
            raise ClusterError(f"{_name(broker_id)} runs; stop or kill it first")
        if len(self.broker_ids) == 1:
            raise ClusterError("the only broker has the store in its directory")
        shutil.rmtree(self.broker_dir(broker_id), ignore_errors=True)

    def look(self, function: Callable[[BrokerServer], Found]) -> Found:
        """The result of a function of the broker of this process, called on its loop."""
        return self._run(0).look(function)

    def close(self) -> None:
        """Stop the brokers and remove what they wrote."""
        try:
            self.stop()
        finally:
            if self._starter is not None:
                self._starter.close()
                self._starter = None
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

    def _chosen(self, broker_id: int | None) -> list[int]:
        if broker_id is None:
            return list(self.broker_ids)
        if broker_id not in self.broker_ids:
            raise ClusterError(f"there is no broker {broker_id}; the ids are 0 to {len(self.broker_ids) - 1}")
        return [broker_id]

    def _run(self, broker_id: int) -> BrokerRun:
        (chosen,) = self._chosen(broker_id)
        if chosen not in self._runs:
            only = len(self.broker_ids) == 1
            raise ClusterError("the cluster does not run" if only else f"{_name(broker_id)} does not run")
        return self._runs[chosen]

    def _settings(self, broker_id: int) -> dict[str, str]:
        known = self._addresses.get(broker_id)
        settings = {
            "log.dirs": str(self.broker_dir(broker_id)),
            "listeners": f"PLAINTEXT://{known[0]}" if known else ANY_PORT,
            "odradek.coordination": f"sqlite:{self.data_dir / 'coordination.db'}?synchronous=off",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            **self._given,
        }
        if len(self.broker_ids) > 1:
            settings["broker.id"] = str(broker_id)
        return settings

    def _make_run(self, broker_id: int) -> BrokerRun:
        # Each kind imports only what it needs: a broker in its own process needs few imports here.
        settings = self._settings(broker_id)
        if self._in_process:
            from odradek.testing.broker_thread import BrokerThread  # noqa: PLC0415

            return BrokerThread(settings)
        if len(self.broker_ids) == 1:
            from odradek.testing.broker_process import BrokerProcess  # noqa: PLC0415

            return BrokerProcess(settings, self._own_directory / "broker.log")
        from odradek.testing.forked_brokers import BrokerStarter, ForkedBroker  # noqa: PLC0415

        if self._starter is None:
            self._starter = BrokerStarter(self._own_directory / "starter.log")
        log_path = self._own_directory / f"broker-{broker_id}.log"
        return ForkedBroker(self._starter, broker_id, settings, log_path)

    def _wait_for_metadata(self) -> None:
        """Brokers that were just started learn of each other a moment later than they are ready."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        running = set(self._runs)
        for broker_id in running:
            while not running <= (seen := live_brokers(self._address(broker_id))):
                if time.monotonic() > deadline:
                    raise ClusterError(f"{_name(broker_id)} knows only the brokers {sorted(seen)}")
                time.sleep(0.005)


def _name(broker_id: int | None) -> str:
    return f"broker {broker_id}"


def _text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
