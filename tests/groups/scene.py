"""A topic, the members of a group that read it, each in a process of its own, and the one who writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from compat.java_tools import QUICK_JVM, RUN_CLASS
from groups.member import HEARTBEAT_MS, SESSION_MS
from odradek.testing import Cluster

MEMBER = Path(__file__).with_name("member.py")
JAVA = "java"
TIMEOUT_S = 60
LAST_WORDS = 2_000
Position = tuple[str, int, int]
Partition = tuple[str, int]


class RunningMember:
    """A consumer in a process of its own, and what it said it did."""

    def __init__(self, command: list[str], complaints: Path) -> None:
        self.complaints = complaints
        with complaints.open("w") as stderr:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=os.environ | {"KAFKA_HEAP_OPTS": QUICK_JVM},
            )
        self.read: list[Position] = []
        self.committed: dict[Partition, int] = {}
        self.assignments: list[frozenset[Partition]] = []
        self.is_killed = False
        self.is_fenced = False
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._hear(line)

    def _hear(self, line: str) -> None:
        match line.split():
            case ["read", topic, partition, offset]:
                self.read.append((topic, int(partition), int(offset)))
            case ["committed", topic, partition, offset]:
                self.committed[topic, int(partition)] = int(offset)
            case ["assigned", *places]:
                pairs = (place.rsplit(":", 1) for place in places)
                self.assignments.append(frozenset((topic, int(partition)) for topic, partition in pairs))
            case ["fenced"]:
                self.is_fenced = True

    def subscribe(self, *topics: str) -> None:
        """Read these from now on."""
        assert self.process.stdin is not None
        print(*topics, file=self.process.stdin, flush=True)

    def stop(self) -> None:
        """Leave the group in order."""
        self.check_alive()
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(TIMEOUT_S) == 0, self.complaints.read_text()
        self._end()

    def story(self) -> str:
        """What it did so far, for the message of a failed test."""
        words = self.complaints.read_text()[-LAST_WORDS:]
        return f"{self.complaints.stem}: {len(self.read)} read, assigned {self.assignments[-3:]}\n{words}"

    def check_alive(self) -> None:
        """Fail with its last words if it ended by itself."""
        assert self.is_fenced or self.process.poll() is None, self.complaints.read_text()

    def kill(self) -> None:
        """Vanish; the coordinator has to find out."""
        self.is_killed = True
        self.process.kill()
        self.process.wait()
        self._end()

    @property
    def has_ended(self) -> bool:
        """Whether it was stopped or killed."""
        return self.process.stdout is None or self.process.stdout.closed

    def _end(self) -> None:
        self._listener.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def may_be_read_again(self, position: Position) -> bool:
        topic, partition, offset = position
        has_vanished = self.is_killed or self.is_fenced
        return has_vanished and offset >= self.committed.get((topic, partition), 0)


class JavaMember(RunningMember):
    """Kafka's VerifiableConsumer, which commits after each poll and prints an object for all that it does."""

    def _hear(self, line: str) -> None:
        reported = json.loads(line) if line.startswith("{") else {"name": ""}
        match reported["name"]:
            case "records_consumed":
                for row in reported["partitions"]:
                    offsets = range(row["minOffset"], row["maxOffset"] + 1)
                    self.read += ((row["topic"], row["partition"], offset) for offset in offsets)
            case "offsets_committed" if reported["success"]:
                for row in reported["offsets"]:
                    self.committed[row["topic"], row["partition"]] = row["offset"]
            case "partitions_assigned":
                rows = reported["partitions"]
                self.assignments.append(frozenset((row["topic"], row["partition"]) for row in rows))

    def stop(self) -> None:
        """It leaves when it is terminated."""
        self.check_alive()
        self.process.terminate()
        self.process.wait(TIMEOUT_S)
        self._end()


def start_member(library: str, options: dict[str, str], place: Path) -> RunningMember:
    """A member of any library; `place` is the beginning of the names of its files."""
    complaints = place.with_suffix(".stderr")
    if library == JAVA:
        return JavaMember(_java_command(options, place.with_suffix(".properties")), complaints)
    return RunningMember([sys.executable, str(MEMBER), library, json.dumps(options)], complaints)


def _java_command(options: dict[str, str], properties: Path) -> list[str]:
    protocol = options.get("protocol", "classic")
    settings = {"metadata.max.age.ms": 1_000}
    flags = {
        "bootstrap-server": options["bootstrap"],
        "topic": options["topic"],
        "group-id": options["group"],
        "group-protocol": protocol,
    }
    if protocol == "classic":
        settings["heartbeat.interval.ms"] = HEARTBEAT_MS
        flags["session-timeout"] = options.get("session_ms", str(SESSION_MS))
        flags["assignment-strategy"] = "org.apache.kafka.clients.consumer.RoundRobinAssignor"
    if "instance" in options:
        flags["group-instance-id"] = options["instance"]
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    flags["command-config"] = str(properties)
    words = [word for flag, value in flags.items() for word in (f"--{flag}", value)]
    return [str(RUN_CLASS), "VerifiableConsumer", *words]


class Scene:
    """One group, its topics, and everything that was ever read by a member of it."""

    def __init__(self, cluster: Cluster, name: str, partitions: int, directory: Path) -> None:
        self.cluster = cluster
        self.name = name
        self.partitions: dict[str, int] = {}
        self.members: list[RunningMember] = []
        self.written: set[Position] = set()
        self._directory = directory
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        self.make_topic(name, partitions)
        self.producer = self.new_producer()

    def make_topic(self, topic: str, partitions: int) -> None:
        for made in self.admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            made.result()
        self.partitions[topic] = partitions

    def new_producer(self) -> confluent_kafka.Producer:
        return confluent_kafka.Producer({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})

    def start(self, library: str, **options: str) -> RunningMember:
        options |= {"bootstrap": self.cluster.bootstrap, "group": self.name, "topic": self.name}
        place = self._directory / f"{len(self.members)}-{library}"
        self.members.append(start_member(library, options, place))
        return self.members[-1]

    def write(self, count: int = 30) -> None:
        def written(error: object, message: confluent_kafka.Message) -> None:
            assert error is None
            self.written.add((message.topic(), message.partition(), message.offset()))

        for topic, partitions in self.partitions.items():
            for partition in range(partitions):
                for number in range(count):
                    self.producer.produce(topic, b"%d" % number, partition=partition, on_delivery=written)
        assert self.producer.flush(TIMEOUT_S) == 0

    def grow(self, partitions: int) -> None:
        for grown in self.admin.create_partitions([NewPartitions(self.name, partitions)]).values():
            grown.result()
        self.partitions[self.name] = partitions
        # The old one would look at the topic again in five minutes.
        self.producer = self.new_producer()

    def wait_until_all_is_read(self) -> None:
        wait_for(lambda: {one for member in self.members for one in member.read} >= self.written)

    def wait_until_everybody_reads(self, *members: RunningMember) -> None:
        """Write on until each of these has read something new."""
        before = [len(member.read) for member in members]
        self._write_until(
            lambda: all(len(member.read) > count for member, count in zip(members, before, strict=True))
        )

    def wait_until_somebody_reads(self, topic: str, *members: RunningMember) -> None:
        """Write on until one of these has read something of a topic."""
        self._write_until(lambda: any(one[0] == topic for member in members for one in member.read))

    def _write_until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not is_so():
            if time.monotonic() > deadline:
                stories = "\n".join(member.story() for member in self.members)
                raise AssertionError(f"it did not come to pass\n{stories}")
            for member in self.members:
                if not member.has_ended:
                    member.check_alive()
            self.write(1)
            time.sleep(0.05)

    def check(self) -> None:
        """Nothing is skipped, and nothing read twice without an excuse."""
        self.wait_until_all_is_read()
        for member in self.members:
            if not member.has_ended:
                member.stop()
        times = Counter(one for member in self.members for one in member.read)
        assert set(times) == self.written
        twice = {position: count for position, count in times.items() if count > 1}
        for position, count in twice.items():
            excuses = sum(
                member.may_be_read_again(position) and position in member.read for member in self.members
            )
            assert count <= 1 + excuses, f"{position} was read {count} times"

    def close(self) -> None:
        for member in self.members:
            if not member.has_ended:
                member.kill()


MakeScene = Callable[[int], Scene]


def wait_for(is_so: Callable[[], Any]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)
