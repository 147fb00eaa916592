"""The brokers that are compared, each as a process of its own: odradek as shipped, and Apache Kafka 4.3.1.

Both run with their defaults, but for two: the files of a deleted topic go soon, so that the next run finds an
empty disk, and a broker that is stopped while another is measured is not taken for dead. Kafka's heap is
that of its own start script. The bare loop of `broker/bare_loop.py` can run beside them, to show what the
machine and the clients take by themselves.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import MetadataRequest, MetadataResponse
from processes import free_port, precise_cpu_seconds, resident_bytes, stop, wait_until
from wire import ask

PEERS = Path(__file__).resolve().parent / "peers"
BARE_LOOP = Path(__file__).resolve().parent / "broker" / "bare_loop.py"
HOST = "127.0.0.1"
HEAP = {"KAFKA_HEAP_OPTS": "-Xmx1G -Xms1G"}
DELETE_SOON = "log.segment.delete.delay.ms=250"
LIVE_LONG = {"odradek": "zookeeper.session.timeout.ms=60000", "Kafka": "broker.session.timeout.ms=60000"}
START_SECONDS = 60
SETTLE_SECONDS = 0.3
"""A process that was stopped runs its due timers before it is measured."""


class Broker:
    """One broker process: start, resource usage, stop."""

    name: str
    command: list[str]

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    def prepare(self) -> None:
        """What must be there before the first start and is no part of it."""
        self.directory.mkdir(parents=True, exist_ok=True)

    def launch(self) -> None:
        """Start the process, and return before it is ready."""
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=os.environ | HEAP,
            )

    def is_ready(self) -> bool:
        """Whether it lists itself as a live broker, asked by a client of its own."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} ended: see {self.directory}/server.log")
        try:
            answer = ask(self.port, ApiKey.METADATA, 1, MetadataRequest(topics=[]))
        except OSError:
            return False
        assert isinstance(answer, MetadataResponse)
        return len(answer.brokers) == 1

    def start(self) -> None:
        self.prepare()
        self.launch()
        wait_until(f"{self.name} is ready", self.is_ready, seconds=START_SECONDS)

    def stop(self) -> None:
        if self._process is not None:
            stop(self._process)
            self._process = None

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def hold(self) -> None:
        """Stop all of its threads until `release` (SIGSTOP)."""
        os.kill(self.pid, signal.SIGSTOP)

    def release(self) -> None:
        """Go on after `hold`."""
        os.kill(self.pid, signal.SIGCONT)

    def cpu_seconds(self) -> float:
        return precise_cpu_seconds(self.pid)

    def resident_bytes(self) -> int:
        return resident_bytes(self.pid)

    # Topics

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        admin = self._admin()  # held until the answer is there: without it the future fails
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)

    def delete_topic(self, topic: str) -> None:
        """Delete it, and wait until its bytes are gone: unwritten pages must not burden who comes next."""
        admin = self._admin()
        admin.delete_topics([topic])[topic].result(30)
        wait_until(f"{self.name}: files of {topic} gone", lambda: not self._files(topic), seconds=60)

    def _files(self, topic: str) -> list[Path]:
        return list(self.directory.glob(f"*/{topic}-*"))

    def _admin(self) -> AdminClient:
        return AdminClient(
            {"bootstrap.servers": self.bootstrap, "broker.address.family": "v4", "log_level": 3}
        )


class Odradek(Broker):
    """Ours, started by its command line."""

    name = "odradek"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        program = str(Path(sys.executable).with_name("odradek"))
        places = ["--data-dir", str(directory / "data"), "--listener", f"PLAINTEXT://{self.bootstrap}"]
        self.command = [program, "start", *places, "--set", DELETE_SOON, "--set", LIVE_LONG[self.name]]


class Kafka(Broker):
    """Apache Kafka in KRaft combined mode."""

    name = "Kafka"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._settings = f"{directory}/server.properties"
        self.command = [str(PEERS / "run-class"), "kafka.Kafka", self._settings]

    def prepare(self) -> None:
        """Format the storage: `start` does that first, and what it starts then is killed at once."""
        if not Path(self._settings).exists():
            own_address = f"advertised.listeners=PLAINTEXT://{self.bootstrap}"
            listeners = f"listeners=PLAINTEXT://{self.bootstrap},CONTROLLER://localhost:{self.port + 1000}"
            place = [str(self.directory), str(self.port)]
            settings = [listeners, own_address, DELETE_SOON, LIVE_LONG[self.name]]
            command = [str(PEERS / "start"), *place, *settings]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"BROKERS": "0"})
            subprocess.run([PEERS / "stop", str(self.directory), "KILL"], check=True)


class BareLoop(Broker):
    """A server that accepts produce requests and does almost nothing; it has no topics to create."""

    name = "bare loop"

    def __init__(self, directory: Path, partitions: int = 1) -> None:
        super().__init__(directory)
        self.command = [sys.executable, str(BARE_LOOP), str(self.port), str(directory), str(partitions)]

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        """Nothing to do."""

    def delete_topic(self, topic: str) -> None:
        """Nothing to do."""


@contextmanager
def held(brokers: Iterable[Broker]) -> Iterator[None]:
    """Stop these while another one is measured.

    A JVM that nobody asks for anything still takes a few hundredths of a core, in bursts; two cores are too
    few to measure something else beside it.
    """
    standing = tuple(brokers)
    for broker in standing:
        broker.hold()
    try:
        time.sleep(SETTLE_SECONDS)
        yield
    finally:
        for broker in standing:
            broker.release()


@contextmanager
def running(*makers: Callable[[Path], Broker], directory: Path) -> Iterator[tuple[Broker, ...]]:
    """Brokers of these kinds on fresh directories; their data is gone afterwards."""
    brokers = tuple(make(directory / f"broker-{number}") for number, make in enumerate(makers))
    try:
        for broker in brokers:
            broker.start()
        yield brokers
    finally:
        for broker in brokers:
            broker.stop()
            shutil.rmtree(broker.directory, ignore_errors=True)
