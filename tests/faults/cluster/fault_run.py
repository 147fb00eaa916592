"""One run: clients work, faults are done and healed one after another, then everything is compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

from confluent_kafka import KafkaException

from faults.cluster.brokers import Brokers
from faults.cluster.end_checks import (
    compare_with_restarted,
    dump_problems,
    unserved,
    verify_problems,
    wait_for_preferred_leaders,
)
from faults.cluster.java_workers import VerifiableConsumer, VerifiableProducer
from faults.cluster.kinds import KINDS, ZOOKEEPER_KINDS, Scene
from faults.cluster.producers import PRODUCERS
from faults.cluster.readers import READERS
from faults.cluster.worker import Work
from faults.cluster.zookeepers import ZooKeepers
from odradek.testing.history.operations import Fault
from odradek.testing.history.recorder import Recorder, load, now_ms
from odradek.testing.history.replicas import partition_differences
from odradek.testing.history.verdict import Verdict, check

TOPIC = "history"
ONLINE_SECONDS = 30.0
STOP_SECONDS = 150.0


class Client(Protocol):
    work: Work
    failure: str

    def start(self) -> None: ...
    def stop(self, seconds: float) -> None: ...


@dataclass
class Plan:
    """What a run does."""

    seed: int
    faults: Sequence[str]
    partitions: int = 3
    replicas: int = 3
    min_insync_replicas: int = 2
    rate: int = 100
    java: bool = False
    in_groups: bool = True
    is_kafka: bool = False
    """Memory, open files and `odradek log verify` are asked of our brokers only."""
    waits_for_preferred_leaders: bool = True
    compares_with_restarted: bool = True
    hold_seconds: tuple[float, float] = (1.0, 5.0)
    pause_between_seconds: tuple[float, float] = (0.5, 2.0)


@dataclass
class Result:
    """What came out: the verdict, what differs between replicas, and how long healing took."""

    verdict: Verdict
    differences: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    online_seconds: dict[str, list[float]] = field(default_factory=dict)
    in_sync_seconds: dict[str, list[float]] = field(default_factory=dict)
    end_notes: list[str] = field(default_factory=list)
    """What the checks at the end measured."""

    @property
    def is_good(self) -> bool:
        return self.verdict.is_good and not self.differences and not self.failures

    def lines(self) -> list[str]:
        healing = [
            f"{kind}: online after {_list(self.online_seconds[kind])} s, in sync after {_list(times)} s"
            for kind, times in self.in_sync_seconds.items()
        ]
        compared = [f"replicas differ: {line}" for line in self.differences]
        return [
            *self.verdict.lines(),
            *healing,
            *(compared or ["replicas are the same"]),
            *self.end_notes,
            *self.failures,
        ]


def _list(seconds: Sequence[float]) -> str:
    return ", ".join(f"{one:.1f}" for one in seconds)


class FaultRun:
    """Drives a cluster that runs already. `said` gets a line for each step."""

    def __init__(
        self,
        brokers: Brokers,
        plan: Plan,
        directory: Path,
        zookeepers: ZooKeepers | None = None,
        said: Callable[[str], object] = lambda line: None,
    ) -> None:
        self._brokers = brokers
        self._plan = plan
        self._directory = directory / "history"
        self._directory.mkdir(parents=True, exist_ok=True)
        self._said = said
        random = Random(plan.seed)
        self._scene = Scene(brokers, TOPIC, plan.partitions, random, zookeepers, plan.hold_seconds)
        self._online: dict[str, list[float]] = {}
        self._in_sync: dict[str, list[float]] = {}
        self._failures: list[str] = []
        self._notes: list[str] = []

    def run(self) -> Result:
        """All of it; the brokers are stopped afterwards, because their files are compared."""
        plan = self._plan
        self._brokers.create_topic(
            TOPIC, plan.partitions, plan.replicas, min_insync_replicas=str(plan.min_insync_replicas)
        )
        began = now_ms()
        producers, readers = self._clients()
        for client in (*producers, *readers):
            client.start()
        try:
            self._do_faults()
        finally:
            self._stop(producers)
            self._stop(readers)
        self._start_the_rest()
        self._read_everything()
        history = load(self._directory)
        verdict = check(history, seed=plan.seed, duration_ms=now_ms() - began)
        self._failures += unserved(history, "ZooKeeper away")
        self._end_cluster()
        differences = self._compare_files()
        return Result(verdict, differences, self._failures, self._online, self._in_sync, self._notes)

    def _clients(self) -> tuple[list[Client], list[Client]]:
        kinds = [*PRODUCERS]
        producers: list[Client] = [
            PRODUCERS[kind](self._work(kind, f"p{number}"), self._directory)
            for number, kind in enumerate(kinds)
        ]
        readers: list[Client] = [
            READERS[kind](self._work(kind, kind.replace(" ", "-"), group), self._directory)
            for kind, group in self._reader_kinds()
        ]
        if self._plan.java:
            producers.append(VerifiableProducer(self._work("java", "java-producer"), self._directory))
            readers.append(VerifiableConsumer(self._work("java", "java-consumer", "java"), self._directory))
        return producers, readers

    def _reader_kinds(self) -> list[tuple[str, str]]:
        alone = [("confluent reader", ""), ("odradek reader", "")]
        members = [("confluent member", "confluent"), ("odradek member", "odradek")]
        return alone + (members if self._plan.in_groups else [])

    def _work(self, kind: str, name: str, group: str = "") -> Work:
        plan = self._plan
        return Work(kind, name, self._brokers.bootstrap, TOPIC, plan.partitions, group, plan.rate)

    def _do_faults(self) -> None:
        plan, random = self._plan, self._scene.random
        with Recorder(self._directory, "faults") as recorder:
            for kind in plan.faults:
                time.sleep(random.uniform(*plan.pause_between_seconds))
                try:
                    self._do_fault(kind, recorder)
                except (AssertionError, KafkaException) as error:
                    self._failures.append(f"{kind}: {error}")
                    self._said(f"{kind}: {error}")
                    break

    def _start_the_rest(self) -> None:
        """After a fault that failed half-way."""
        for broker_id in sorted(set(self._brokers.nodes) - self._brokers.running):
            self._brokers.start(broker_id)

    def _do_fault(self, kind: str, recorder: Recorder) -> None:
        began = now_ms()
        target = (KINDS | ZOOKEEPER_KINDS)[kind](self._scene)
        healed = now_ms()
        recorder.record(Fault(kind, target, began, healed))
        self._said(f"{kind} ({target}): {(healed - began) / 1000:.1f} s")
        self._wait_until_well(kind)

    def _wait_until_well(self, kind: str) -> None:
        online = self._brokers.wait_online([TOPIC])
        if online > ONLINE_SECONDS:
            self._failures.append(f"{kind}: partitions were offline for {online:.1f} s after healing")
        in_sync = online + self._brokers.wait_in_sync([TOPIC])
        self._online.setdefault(kind, []).append(online)
        self._in_sync.setdefault(kind, []).append(in_sync)

    def _stop(self, clients: Sequence[Client]) -> None:
        for client in clients:
            if hasattr(client, "stopping"):
                client.stopping.set()  # so that all finish side by side
        for client in clients:
            client.stop(STOP_SECONDS)
            if client.failure:
                self._failures.append(f"{client.work.name} ({client.work.kind}): {client.failure}")

    def _read_everything(self) -> None:
        reader = READERS["final reader"](self._work("final reader", "final-reader"), self._directory)
        reader.start()
        reader.stop(STOP_SECONDS)
        if reader.failure:
            self._failures.append(f"final reader: {reader.failure}")

    def _end_cluster(self) -> None:
        """Wait until all is as before the faults, and stop the brokers."""
        try:
            self._brokers.wait_in_sync([TOPIC])
            topics = sorted(self._brokers.metadata().topics)
            if self._plan.waits_for_preferred_leaders:
                seconds = wait_for_preferred_leaders(self._brokers, topics)
                self._notes.append(f"preferred replicas led after {seconds:.1f} s")
            if self._plan.compares_with_restarted and not self._plan.is_kafka:
                notes, leaks = compare_with_restarted(self._brokers, topics)
                self._notes += notes
                self._failures += leaks
            self._brokers.stop_all()
        except (AssertionError, KafkaException) as error:
            self._failures.append(f"at the end: {error}")
            self._brokers.end()

    def _compare_files(self) -> list[str]:
        log_dirs = {str(node.broker_id): node.log_dir for node in self._brokers.nodes.values()}
        if not self._plan.is_kafka:
            self._failures += verify_problems(log_dirs.values())
        if self._plan.java:
            self._failures += dump_problems([*log_dirs.values()])
        partitions = {path.name for log_dir in log_dirs.values() for path in log_dir.glob(f"{TOPIC}*-[0-9]*")}
        return [
            difference
            for partition in sorted(partitions)
            for difference in partition_differences(log_dirs, partition)
        ]


def schedule(seed: int, count: int, kinds: Sequence[str]) -> list[str]:
    """Every kind once before any comes again, in an order that the seed decides."""
    random, chosen = Random(seed), list[str]()
    while len(chosen) < count:
        chosen += random.sample(list(kinds), len(kinds))
    return chosen[:count]
