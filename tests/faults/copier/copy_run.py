"""One run: a topic is copied while brokers and copiers are killed; the output must equal the input."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from confluent_kafka import Consumer, Producer, TopicPartition

from faults.cluster.brokers import Brokers
from faults.copier.copiers import INPUT, OUTPUT, Copier

INTERNAL = ["__transaction_state", "__consumer_offsets"]
PATIENCE_SECONDS = 120.0
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Plan:
    """What a run does; a pause is between the end of one fault and the next."""

    seed: int
    records: int
    partitions: int = 4
    transaction_size: int = 200
    pause_seconds: tuple[float, float] = (1.0, 4.0)
    down_seconds: tuple[float, float] = (0.5, 3.0)
    most_seconds: float = 1800.0


@dataclass
class Result:
    """What came out; `differences` is empty if each output partition is its input, in order."""

    seed: int
    seconds: float = 0.0
    records: int = 0
    brokers_killed: int = 0
    copiers_killed: int = 0
    copiers_failed: int = 0
    differences: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        counts = f"{self.brokers_killed} brokers and {self.copiers_killed} copiers killed"
        summary = f"{self.records} records copied in {self.seconds:.0f} s, seed {self.seed}: {counts}"
        failed = f"copiers that ended by an error and were started again: {self.copiers_failed}"
        return [summary, failed, *(self.differences or ["the output is the input"])]


class CopyRun:
    """Drives three brokers that run already. `said` gets a line for each fault."""

    def __init__(
        self, brokers: Brokers, plan: Plan, directory: Path, said: Callable[[str], object] = lambda line: None
    ) -> None:
        self._brokers = brokers
        self._plan = plan
        self._said = said
        self._random = Random(plan.seed)
        self._result = Result(plan.seed)
        self._copiers = [
            Copier(number, brokers.bootstrap, directory, plan.transaction_size)
            for number in range(plan.partitions)
        ]

    def run(self) -> Result:
        """All of it; the brokers run on."""
        for topic in (INPUT, OUTPUT):
            replicas = len(self._brokers.nodes)
            self._brokers.create_topic(topic, self._plan.partitions, replicas, min_insync_replicas="2")
        written = self._write()
        began = time.monotonic()
        for copier in self._copiers:
            copier.start()
        try:
            self._kill_until_copied(began + self._plan.most_seconds)
        finally:
            for copier in self._copiers:
                if copier.is_running:
                    copier.kill()
        result = self._result
        result.seconds = time.monotonic() - began
        result.copiers_failed = sum(copier.failed for copier in self._copiers)
        self._compare(written)
        return result

    def _write(self) -> list[list[bytes]]:
        """The input, by partition."""
        producer = Producer({"bootstrap.servers": self._brokers.bootstrap, "enable.idempotence": True})
        written: list[list[bytes]] = [[] for _ in range(self._plan.partitions)]
        for number in range(self._plan.records):
            partition, value = number % self._plan.partitions, b"%d" % number
            written[partition].append(value)
            while True:
                try:
                    producer.produce(INPUT, value, partition=partition)
                    break
                except BufferError:
                    producer.poll(POLL_SECONDS)
        assert producer.flush(PATIENCE_SECONDS) == 0
        return written

    # Faults

    def _kill_until_copied(self, deadline: float) -> None:
        while not self._wait(self._random.uniform(*self._plan.pause_seconds)):
            assert time.monotonic() < deadline, f"not copied: {self._copiers}"
            self._random.choice((self._kill_broker, self._kill_copier, self._kill_both))()
            self._brokers.wait_in_sync([OUTPUT, INPUT, *INTERNAL])

    def _wait(self, seconds: float) -> bool:
        """Wait that long, or until everything is copied, which is returned."""
        end = time.monotonic() + seconds
        while not (finished := all(copier.is_finished for copier in self._copiers)):
            for copier in self._copiers:
                copier.start_again_if_failed()
            if time.monotonic() > end:
                break
            time.sleep(POLL_SECONDS)
        return finished

    def _kill_broker(self) -> None:
        broker_id = self._random.choice(sorted(self._brokers.nodes))
        self._brokers.kill(broker_id)
        self._said(f"broker {broker_id} is killed")
        self._result.brokers_killed += 1
        self._wait(self._random.uniform(*self._plan.down_seconds))
        self._brokers.start(broker_id)

    def _kill_copier(self) -> None:
        copier = self._random.choice(self._copiers)
        if not (copier.is_running and copier.has_progressed):
            return
        copier.kill()
        self._said(f"copier {copier.number} is killed")
        self._result.copiers_killed += 1
        copier.start()

    def _kill_both(self) -> None:
        self._kill_copier()
        self._kill_broker()

    # The verdict

    def _compare(self, written: list[list[bytes]]) -> None:
        for partition, expected in enumerate(written):
            found = self._read(partition)
            self._result.records += len(found)
            if found != expected:
                self._result.differences.append(f"partition {partition}: {difference(expected, found)}")

    def _read(self, partition: int) -> list[bytes]:
        """All committed values of an output partition, once nothing in it is undecided."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._brokers.bootstrap,
                "group.id": "compare",
                "isolation.level": "read_committed",
            }
        )
        place = TopicPartition(OUTPUT, partition, 0)
        consumer.assign([place])
        end = self._high_watermark(place)
        found: list[bytes] = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while consumer.position([place])[0].offset < end:
            assert time.monotonic() < deadline, f"partition {partition} has an open transaction"
            found += [message.value() for message in consumer.consume(10_000, 1) if not message.error()]
        consumer.close()
        return found

    def _high_watermark(self, place: TopicPartition) -> int:
        """The end also of what is undecided, which only read_uncommitted asks for."""
        settings = {"group.id": "end", "isolation.level": "read_uncommitted"}
        consumer = Consumer({"bootstrap.servers": self._brokers.bootstrap, **settings})
        _, end = consumer.get_watermark_offsets(place, PATIENCE_SECONDS)
        consumer.close()
        return int(end)


def difference(expected: list[bytes], found: list[bytes]) -> str:
    """What is lost, there twice, never written or in another order."""
    lost = sorted(set(expected) - set(found), key=int)
    foreign = set(found) - set(expected)
    doubled = len(found) - len(set(found))
    if lost or foreign or doubled:
        return f"{len(lost)} lost, first {lost[:3]}; {doubled} there twice; {len(foreign)} never written"
    place = next(index for index, pair in enumerate(zip(expected, found, strict=True)) if len(set(pair)) == 2)
    return f"{found[place]!r} is where {expected[place]!r} should be"
