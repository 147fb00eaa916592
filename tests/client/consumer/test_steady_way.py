"""Records that come one by one are asked for without the schema, and nothing is lost when that changes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek import Consumer, Producer, TopicPartition
from odradek.client.consumer.fetcher import Fetcher
from odradek.client.consumer.steady_way import FetchOnItsWay
from odradek.testing import Cluster

PARTITIONS = 3
numbers = itertools.count()


@pytest.fixture(scope="module")
def producer(cluster: Cluster) -> Iterator[Producer[bytes, bytes]]:
    with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=0) as producer:
        yield producer


@pytest.fixture
def unsteady(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many answers the fetcher itself took."""
    count: Counter[str] = Counter()
    answered = Fetcher.answered

    def counted(self: Fetcher, fetch: FetchOnItsWay, frame: memoryview | None) -> None:
        count["answers"] += 1
        answered(self, fetch, frame)

    monkeypatch.setattr(Fetcher, "answered", counted)
    return count


def read(consumer: Consumer[bytes, bytes], count: int) -> list[tuple[int, int, bytes | None]]:
    records: list[tuple[int, int, bytes | None]] = []
    while len(records) < count:
        polled = consumer.poll(20)
        assert polled, f"only {len(records)} of {count} records came"
        records += [(record.partition, record.offset, record.value) for record in polled]
    return records


def assigned(cluster: Cluster, topic: str, fetch_max_wait_ms: int) -> Consumer[bytes, bytes]:
    consumer: Consumer[bytes, bytes] = Consumer(
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=fetch_max_wait_ms,
    )
    consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
    return consumer


def test_records_that_come_one_by_one_need_the_fetcher_only_in_the_beginning(
    cluster: Cluster, producer: Producer[bytes, bytes], unsteady: Counter[str]
) -> None:
    assert producer.partitions_for("steady") == PARTITIONS
    with assigned(cluster, "steady", 10_000) as consumer:
        for number in range(60):
            partition, value = number % PARTITIONS, b"%d" % number
            sent = producer.send("steady", value, partition=partition)
            assert read(consumer, 1) == [(partition, number // PARTITIONS, value)]
            assert sent.result(20).offset == number // PARTITIONS
    # The first of all, and one that waits when the consumer closes.
    assert unsteady["answers"] <= 5


kinds = st.sampled_from(["send", "send", "send", "send three", "seek", "pause", "resume", "fewer", "all"])


@settings(max_examples=25)
@given(steps=st.lists(st.tuples(kinds, st.integers(0, PARTITIONS - 1)), min_size=1, max_size=25))
def test_whatever_changes_in_between_every_record_comes_in_order(
    cluster: Cluster, producer: Producer[bytes, bytes], steps: list[tuple[str, int]]
) -> None:
    topic = f"changing-{next(numbers)}"
    assert producer.partitions_for(topic) == PARTITIONS
    logs: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    with assigned(cluster, topic, 20) as consumer:
        every = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        positions, readable = [0] * PARTITIONS, set(range(PARTITIONS))
        for kind, number in steps:
            partition = every[number]
            if kind.startswith("send"):
                for _ in range(3 if kind == "send three" else 1):
                    logs[number].append(b"%d" % len(logs[number]))
                    producer.send(topic, logs[number][-1], partition=number).result(20)
            elif kind == "seek":
                positions[number] = len(logs[number]) // 2
                if number in _assigned(consumer):
                    consumer.seek(partition, positions[number])
            elif kind == "pause":
                if number in _assigned(consumer):
                    consumer.pause([partition])
                    readable.discard(number)
            elif kind == "resume":
                if number in _assigned(consumer):
                    consumer.resume([partition])
                    readable.add(number)
            else:
                wanted = every if kind == "all" else every[: number + 1]
                consumer.assign(wanted)
                for one in wanted:
                    consumer.seek(one, positions[one.partition])
                readable = {one.partition for one in wanted}
            due = sum(len(logs[one]) - positions[one] for one in readable)
            for came, offset, value in read(consumer, due) if due else ():
                assert (offset, value) == (positions[came], logs[came][positions[came]])
                positions[came] += 1


def _assigned(consumer: Consumer[bytes, bytes]) -> set[int]:
    return {partition.partition for partition in consumer.assignment()}
