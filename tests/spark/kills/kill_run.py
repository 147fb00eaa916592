"""Runs a Spark program to its end while processes and brokers are killed at the hooks, and reads the result.

A kill is a place and a victim: the process that is there, the whole driver, an executor's JVM, the broker
that coordinates the transaction, or another broker. Kills come in the order of the plan, each at the first
time that its place is reached after the one before. `shuffle` loses the files between two stages, so that
Spark runs a stage again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from faults.cluster.brokers import Brokers
from odradek.client.admin.admin import Admin
from odradek.client.admin.offsets import IsolationLevel, OffsetSpec
from odradek.client.errors import BrokerError
from odradek.common.ids import TopicPartition as Place
from odradek.spark.transactions import hooks
from spark.kills.hook_server import HookServer

TESTS = Path(__file__).resolve().parents[2]
PATIENCE_S = 300
DOWN_S = 0.3
"""How long a killed broker stays away."""

PROCESS, DRIVER, EXECUTOR, COORDINATOR, BROKER = "process", "driver", "executor", "coordinator", "broker"
SHUFFLE = "shuffle"
LOCAL_DIRECTORY = "spark-local"
"""Where Spark keeps the files of shuffles, in the directory of the run."""


@dataclass(frozen=True)
class Kill:
    """One kill of the plan."""

    point: str
    victim: str

    def __str__(self) -> str:
        return f"{self.victim} {self.point}"


@dataclass
class KillRun:
    """One program, its brokers and its plan."""

    brokers: Brokers
    command: Sequence[str]
    plan: Sequence[Kill]
    transactional_id: str
    """What it begins with."""
    directory: Path
    topics: Sequence[str]
    done: list[Kill] = field(default_factory=list)
    starts: int = 0
    report: Callable[[str], None] = print
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """To the end of the program, which is started again after each kill of it."""
        deadline = time.monotonic() + PATIENCE_S + 30 * len(self.plan)
        self._returning: threading.Thread | None = None
        with HookServer(self._reached) as server:
            environment = {
                **os.environ,
                hooks.VARIABLE: server.address,
                "PYSPARK_PYTHON": sys.executable,
                "PYTHONPATH": os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", ""))),
                **self.environment,
            }
            while True:
                assert time.monotonic() < deadline, f"no end; done: {self.done}\n{self.log()[-4000:]}"
                code = self._run_once(environment, deadline)
                assert not server.errors, server.errors
                if code == 0:
                    break
        self._wait_for_brokers()

    def _run_once(self, environment: dict[str, str], deadline: float) -> int:
        self.starts += 1
        with (self.directory / "program.log").open("ab") as log:
            self._program = subprocess.Popen(
                self.command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
            )
            try:
                return self._program.wait(max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return -1
            finally:
                kill_tree(self._program.pid)

    def log(self) -> str:
        return (self.directory / "program.log").read_text(errors="replace")

    def _reached(self, point: str, pid: int) -> None:
        if len(self.done) == len(self.plan) or point != self.plan[len(self.done)].point:
            return
        kill = self.plan[len(self.done)]
        self._wait_for_brokers()
        if not psutil.pid_exists(pid):
            return
        self.done.append(kill)
        self.report(f"kill {len(self.done)} of {len(self.plan)}: {kill}")
        if kill.victim == PROCESS:
            os.kill(pid, signal.SIGKILL)
        elif kill.victim == DRIVER:
            kill_tree(self._program.pid)
        elif kill.victim == EXECUTOR:
            os.kill(executor_of(pid), signal.SIGKILL)
        elif kill.victim == SHUFFLE:
            for file in (self.directory / LOCAL_DIRECTORY).rglob("shuffle_*.data"):
                file.unlink()
        else:
            self._kill_broker(kill.victim)

    def _kill_broker(self, victim: str) -> None:
        with Admin(bootstrap_servers=self.brokers.bootstrap) as admin:
            names = [listed.transactional_id for listed in admin.list_transactions()]
            ours = [name for name in names if name.startswith(self.transactional_id)]
            described = admin.describe_transactions(ours).values()
        # Before the first transaction nobody knows the name.
        known = (one.coordinator_id for one in described if not isinstance(one, BrokerError))
        chosen = next(known, min(self.brokers.nodes))
        if victim == BROKER and len(self.brokers.nodes) > 1:
            chosen = next(one for one in self.brokers.nodes if one != chosen)
        self.brokers.kill(chosen)

        def come_back() -> None:
            time.sleep(DOWN_S)
            self.brokers.start(chosen)

        self._returning = threading.Thread(target=come_back)
        self._returning.start()

    def _wait_for_brokers(self) -> None:
        if self._returning is not None:
            self._returning.join()
            self._returning = None
            self.brokers.wait_in_sync(list(self.topics))


def kill_tree(pid: int) -> None:
    """kill -9 of a process and everything it has started."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for one in [*process.children(recursive=True), process]:
            with suppress(psutil.NoSuchProcess):
                one.kill()


def executor_of(pid: int) -> int:
    """The JVM whose Python worker this is."""
    return next(parent.pid for parent in psutil.Process(pid).parents() if parent.name() == "java")


def produce(bootstrap: str, topic: str, partitions: int, count: int, start: int = 0) -> None:
    """Values `partition number`, each number once, in order; keys repeat."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(start, count):
        place = number % partitions
        producer.produce(topic, f"{place} {number}".encode(), f"key {number % 23}".encode(), partition=place)
    assert producer.flush(60) == 0


def committed_values(bootstrap: str, topic: str) -> list[list[str]]:
    """What read_committed consumers read, by partition, up to the last stable offset."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        partitions = [one.partition for one in admin.describe_topic(topic).partitions]
        wanted = {Place(topic, partition): OffsetSpec.LATEST for partition in partitions}
        ends = admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "check",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found: list[list[str]] = [[] for _ in partitions]
    left = {place.partition: end.offset for place, end in ends.items() if end.offset > 0}
    deadline = time.monotonic() + PATIENCE_S
    while left:
        assert time.monotonic() < deadline, left
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found[message.partition()].append(message.value().decode())
        for place in consumer.position([TopicPartition(topic, partition) for partition in left]):
            if place.offset >= left[place.partition]:
                del left[place.partition]
    consumer.close()
    return found


def check_exactly_once(found: list[list[str]], count: int) -> None:
    """Every number once, and those of one source partition in their order."""
    numbers = sorted(int(value.split()[1]) for values in found for value in values)
    assert numbers == list(range(count)), _difference(numbers, count)
    for values in found:
        for place in {value.split()[0] for value in values}:
            of_place = [int(value.split()[1]) for value in values if value.split()[0] == place]
            assert of_place == sorted(of_place)


def _difference(numbers: list[int], count: int) -> str:
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    missing = sorted(set(range(count)) - set(numbers))
    return f"{len(numbers)} rows instead of {count}: twice {twice[:20]}, missing {missing[:20]}"
