"""Several real clients in one group at once: they come, go, are killed and come back, and nothing is lost.

Nothing is skipped, and nothing is read twice but what a killed member had read after its last commit.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from odradek.testing import Cluster

pytestmark = pytest.mark.slow

MEMBER = Path(__file__).with_name("member.py")
TIMEOUT_S = 60
Position = tuple[int, int]


class RunningMember:
    """A consumer in a process of its own, and what it said it did."""

    def __init__(self, library: str, options: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(MEMBER), library, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.read: list[Position] = []
        self.committed: dict[int, int] = {}
        self.is_killed = False
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            what, partition, offset = line.split()
            if what == "read":
                self.read.append((int(partition), int(offset)))
            else:
                self.committed[int(partition)] = int(offset)

    def stop(self) -> None:
        """Leave the group in order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(TIMEOUT_S) == 0
        self._end()

    def kill(self) -> None:
        """Vanish; the coordinator has to find out."""
        self.is_killed = True
        self.process.kill()
        self.process.wait()
        self._end()

    def _end(self) -> None:
        self._listener.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def may_be_read_again(self, position: Position) -> bool:
        partition, offset = position
        return self.is_killed and offset >= self.committed.get(partition, 0)


class Scene:
    """A topic, those who read it, and the one who writes."""

    def __init__(self, cluster: Cluster, name: str, partitions: int) -> None:
        self.cluster = cluster
        self.name = name
        self.partitions = partitions
        self.members: list[RunningMember] = []
        self.written: set[Position] = set()
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        for made in self.admin.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result()
        self.producer = self.new_producer()

    def new_producer(self) -> confluent_kafka.Producer:
        return confluent_kafka.Producer({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})

    def start(self, library: str, **options: str) -> RunningMember:
        options |= {"bootstrap": self.cluster.bootstrap, "group": self.name, "topic": self.name}
        self.members.append(RunningMember(library, options))
        return self.members[-1]

    def write(self, count: int = 30) -> None:
        def written(error: object, message: confluent_kafka.Message) -> None:
            assert error is None
            self.written.add((message.partition(), message.offset()))

        for partition in range(self.partitions):
            for number in range(count):
                self.producer.produce(self.name, b"%d" % number, partition=partition, on_delivery=written)
        assert self.producer.flush(TIMEOUT_S) == 0

    def grow(self, partitions: int) -> None:
        for grown in self.admin.create_partitions([NewPartitions(self.name, partitions)]).values():
            grown.result()
        self.partitions = partitions
        # The old one would look at the topic again in five minutes.
        self.producer = self.new_producer()

    def wait_until_all_is_read(self) -> None:
        wait_for(lambda: {one for member in self.members for one in member.read} >= self.written)

    def wait_until_everybody_reads(self, *members: RunningMember) -> None:
        """Write on until each of these has read something new."""
        before = [len(member.read) for member in members]
        deadline = time.monotonic() + TIMEOUT_S
        while any(len(member.read) == count for member, count in zip(members, before, strict=True)):
            assert time.monotonic() < deadline
            self.write(1)
            time.sleep(0.05)

    def check(self) -> None:
        """Nothing is skipped, and nothing read twice without an excuse."""
        self.wait_until_all_is_read()
        for member in self.members:
            if not member.is_killed and member.process.poll() is None:
                member.stop()
        times = Counter(one for member in self.members for one in member.read)
        assert set(times) == self.written
        for position, count in times.items():
            excuses = sum(
                member.may_be_read_again(position) and position in member.read for member in self.members
            )
            assert count <= 1 + excuses, f"{position} was read {count} times"

    def close(self) -> None:
        for member in self.members:
            if member.process.poll() is None:
                member.kill()


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    settings = {
        "group.min.session.timeout.ms": 1_000,
        "group.consumer.heartbeat.interval.ms": 200,
        "group.consumer.min.heartbeat.interval.ms": 200,
        "group.consumer.session.timeout.ms": 3_000,
        "group.consumer.min.session.timeout.ms": 3_000,
        "group.consumer.assignment.interval.ms": 0,
    }
    with Cluster(settings) as running:
        yield running


@pytest.fixture
def scene(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Callable[[int], Scene]]:
    made: list[Scene] = []

    def make(partitions: int) -> Scene:
        made.append(Scene(cluster, request.node.name, partitions))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_clients_of_three_libraries_share_a_group(scene):
    on = scene(6)
    on.write()
    members = [on.start(library) for library in ("librdkafka", "aiokafka", "kafka-python")]
    on.wait_until_everybody_reads(*members)
    on.grow(9)
    on.wait_until_everybody_reads(*members)
    members[0].stop()
    on.write()
    on.check()


def test_what_a_killed_member_had_is_read_by_the_others(scene):
    on = scene(6)
    first, second, third = (on.start(library) for library in ("librdkafka", "aiokafka", "kafka-python"))
    on.wait_until_everybody_reads(first, second, third)
    on.write(200)
    second.kill()
    on.write()
    on.wait_until_all_is_read()
    third.kill()
    on.write()
    on.check()


def test_a_static_member_that_is_restarted_goes_on_with_its_partitions(scene):
    on = scene(4)
    static, other = on.start("librdkafka", instance="i1"), on.start("librdkafka", instance="i2")
    on.wait_until_everybody_reads(static, other)
    on.write()
    on.wait_until_all_is_read()
    had = {partition for partition, _ in static.read[-2:]}
    static.stop()
    back = on.start("librdkafka", instance="i1")
    on.wait_until_everybody_reads(back, other)
    assert had & {partition for partition, _ in back.read}
    on.check()


def test_cooperative_members_share_a_group(scene):
    on = scene(6)
    members = [on.start("librdkafka", assignor="cooperative-sticky") for _ in range(2)]
    on.wait_until_everybody_reads(*members)
    members.append(on.start("librdkafka", assignor="cooperative-sticky"))
    on.wait_until_everybody_reads(*members)
    members[0].kill()
    on.write()
    on.check()


def test_a_restart_of_the_broker_keeps_groups_and_offsets(scene, cluster):
    on = scene(4)
    members = [on.start(library) for library in ("librdkafka", "aiokafka", "kafka-python")]
    on.wait_until_everybody_reads(*members)
    on.wait_until_all_is_read()
    cluster.restart()
    on.wait_until_everybody_reads(*members)
    on.check()


def test_members_of_the_new_protocol_come_go_and_are_killed(scene):
    on = scene(6)
    first, second = (on.start("librdkafka", protocol="consumer") for _ in range(2))
    on.wait_until_everybody_reads(first, second)
    third = on.start("librdkafka", protocol="consumer")
    on.grow(9)
    on.wait_until_everybody_reads(first, second, third)
    second.kill()
    on.write()
    on.wait_until_all_is_read()
    first.stop()
    on.write()
    on.check()


def test_a_group_moves_to_the_new_protocol_and_back_while_it_reads(scene):
    on = scene(6)
    classic = on.start("librdkafka")
    on.wait_until_everybody_reads(classic)
    new = on.start("librdkafka", protocol="consumer")
    on.wait_until_everybody_reads(classic, new)
    new.stop()
    on.wait_until_everybody_reads(classic)
    on.check()
