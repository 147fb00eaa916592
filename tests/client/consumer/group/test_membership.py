"""Members of one group against a broker: one owner for each partition, nothing skipped, commits kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pytest

from odradek import Admin, Consumer, Producer, TopicPartition
from odradek.client.committed_offsets import OffsetAndMetadata
from odradek.client.consumer.subscription import RebalanceListener
from odradek.testing import Cluster

Make = Callable[..., Consumer[Any, Any]]
STRATEGIES = ["range", "roundrobin", "sticky", "cooperative-sticky"]


@pytest.fixture(params=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(cluster: Cluster, topic: str, request: pytest.FixtureRequest) -> Iterator[Make]:
    """Members; of the new protocol where the test is run for both."""
    is_new = "protocol" in request.fixturenames and request.getfixturevalue("protocol") == "consumer"
    made: list[Consumer[Any, Any]] = []

    def making(**settings: Any) -> Consumer[Any, Any]:
        quick: dict[str, Any] = {"heartbeat_interval_ms": 50, "session_timeout_ms": 6000}
        if is_new:
            quick = {"group_protocol": "consumer"}
        usual = {
            "group_id": f"group-of-{topic}",
            "auto_offset_reset": "earliest",
            "retry_backoff_ms": 20,
            **quick,
        }
        made.append(Consumer(bootstrap_servers=cluster.bootstrap, **{**usual, **settings}))
        return made[-1]

    yield making
    for consumer in made:
        consumer.close()


def fill(cluster: Cluster, topic: str, start: int, end: int) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in range(start, end):
            producer.send(topic, b"%d" % number, partition=number % 3)


def poll_until(condition: Callable[[], bool], *consumers: Consumer[Any, Any]) -> list[int]:
    """Poll all in turn until something is so; the numbers that were read on the way."""
    numbers: list[int] = []
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, [consumer.assignment() for consumer in consumers]
        for consumer in consumers:
            numbers += [int(record.value) for record in consumer.poll(0.02)]
    return numbers


def all_of(topic: str) -> set[TopicPartition]:
    return {TopicPartition(topic, number) for number in range(3)}


@pytest.mark.usefixtures("protocol")
def test_one_member_gets_everything_and_continues_where_it_left_off(
    cluster: Cluster, topic: str, make: Make
) -> None:
    fill(cluster, topic, 0, 300)
    first = make(max_poll_records=10)
    first.subscribe([topic])
    seen: list[int] = []
    for record in first:
        seen.append(int(record.value))
        if len(seen) == 100:
            break
    first.close()

    second = make()
    second.subscribe([topic])
    rest: list[int] = []
    rest += poll_until(lambda: bool(second.statistics().records_returned), second)
    while len(rest) < 200:
        rest += [int(record.value) for record in second.poll(10)]

    assert sorted(seen + rest) == list(range(300)), "close committed exactly what was given"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_members_share_and_take_over(cluster: Cluster, topic: str, make: Make, strategy: str) -> None:
    fill(cluster, topic, 0, 3000)  # more than is read before the others come
    settings = {"partition_assignment_strategy": [strategy], "max_poll_records": 10}
    first, second = (make(**settings) for _ in range(2))
    _share_and_take_over(topic, 3000, first, second)


def _share_and_take_over(
    topic: str, count: int, first: Consumer[Any, Any], second: Consumer[Any, Any]
) -> None:
    first.subscribe([topic])
    seen = poll_until(lambda: first.assignment() == all_of(topic), first)

    second.subscribe([topic])
    seen += poll_until(
        lambda: (
            bool(second.assignment())
            and not first.assignment() & second.assignment()
            and first.assignment() | second.assignment() == all_of(topic)
        ),
        first,
        second,
    )
    first.close()
    seen += poll_until(lambda: second.assignment() == all_of(topic), second)
    while len(set(seen)) < count:
        seen += [int(record.value) for record in second.poll(1)]

    assert sorted(seen) == list(range(count)), "nothing skipped, nothing twice"


@pytest.mark.parametrize("protocol", ["consumer"], indirect=True)
@pytest.mark.usefixtures("protocol")
def test_members_of_the_new_protocol_share_and_take_over(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 0, 1500)
    first, second = (make(max_poll_records=10) for _ in range(2))
    _share_and_take_over(topic, 1500, first, second)


class Noting(RebalanceListener):
    def __init__(self) -> None:
        self.notes: list[tuple[str, list[TopicPartition]]] = []

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.notes.append(("assigned", list(partitions)))

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.notes.append(("revoked", list(partitions)))

    def owned(self) -> set[TopicPartition]:
        """The partitions that a listener has after all these calls."""
        owned: set[TopicPartition] = set()
        for what, partitions in self.notes:
            owned = owned.union(partitions) if what == "assigned" else owned.difference(partitions)
        return owned


def test_a_listener_gets_all_partitions_eager_and_only_the_difference_cooperative(
    cluster: Cluster, topic: str, make: Make
) -> None:
    fill(cluster, topic, 0, 3)
    partitions = sorted(all_of(topic))
    for strategy, revoked in (("range", 3), ("cooperative-sticky", 1)):
        listener, group = Noting(), f"{strategy}-of-{topic}"
        first = make(group_id=group, partition_assignment_strategy=[strategy])
        first.subscribe([topic], listener=listener)
        poll_until(lambda first=first: first.assignment() == all_of(topic), first)
        poll_until(lambda listener=listener: listener.notes == [("assigned", partitions)], first)
        second = make(group_id=group, partition_assignment_strategy=[strategy])
        second.subscribe([topic])
        poll_until(lambda second=second: bool(second.assignment()), first, second)
        poll_until(lambda first=first: 0 < len(first.assignment()) < 3, first, second)
        what, which = listener.notes[1]
        assert (what, len(which)) == ("revoked", revoked)


@pytest.mark.usefixtures("protocol")
def test_a_commit_in_the_listener_is_the_last_word(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 0, 30)
    first = make(enable_auto_commit=False)

    class Committing(RebalanceListener):
        def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
            first.commit()

    first.subscribe([topic], listener=Committing())
    seen: list[int] = []
    while len(seen) < 30:
        seen += [int(record.value) for record in first.poll(1)]
    second = make(enable_auto_commit=False)
    second.subscribe([topic])
    poll_until(lambda: bool(second.assignment()) and bool(first.assignment()), first, second)

    fill(cluster, topic, 30, 33)
    later: list[int] = []
    while len(later) < 3:
        later += [int(record.value) for member in (first, second) for record in member.poll(0.05)]
    assert sorted(later) == [30, 31, 32]


def test_commits_are_returned_with_their_metadata(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 0, 3)
    consumer, partition = make(enable_auto_commit=False), TopicPartition(topic, 0)
    consumer.assign([partition])

    assert consumer.committed([partition]) == {partition: None}
    consumer.commit({partition: OffsetAndMetadata(5, "noted")})
    assert consumer.committed([partition]) == {partition: OffsetAndMetadata(5, "noted")}
    reported: list[Any] = []
    consumer.commit_async({partition: 7}, on_commit=lambda error, offsets: reported.append((error, offsets)))
    poll_until(lambda: bool(reported), consumer)
    assert reported == [(None, {partition: OffsetAndMetadata(7)})]
    assert make().committed([partition]) == {partition: OffsetAndMetadata(7)}


def test_closing_commits_also_what_was_read_of_partitions_by_choice(
    cluster: Cluster, topic: str, make: Make
) -> None:
    fill(cluster, topic, 0, 30)
    consumer, partition = make(max_poll_records=4), TopicPartition(topic, 0)
    consumer.assign([partition])
    read = consumer.poll(10)
    consumer.close()

    committed = make().committed([partition])[partition]
    assert committed is not None
    assert committed.offset == len(read) == 4


@pytest.mark.usefixtures("protocol")
def test_auto_commit_covers_what_earlier_polls_gave_and_no_more(
    cluster: Cluster, topic: str, make: Make
) -> None:
    fill(cluster, topic, 0, 30)
    consumer, partition = make(auto_commit_interval_ms=0, max_poll_records=4), TopicPartition(topic, 0)
    consumer.assign([partition])
    first = []
    while not first:
        first = consumer.poll(10)
    consumer.poll(10)

    deadline = time.monotonic() + 20
    while (committed := consumer.committed([partition])[partition]) is None:
        assert time.monotonic() < deadline
    assert committed.offset == len(first)


@pytest.mark.usefixtures("protocol")
def test_a_pattern_finds_topics_that_come_later(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, f"{topic}-1", 0, 3)
    consumer = make(metadata_max_age_ms=100)
    consumer.subscribe(pattern=f"{topic}-.*")
    seen = poll_until(lambda: consumer.assignment() == all_of(f"{topic}-1"), consumer)

    fill(cluster, f"{topic}-2", 3, 6)
    fill(cluster, f"other-{topic}", 6, 9)
    seen += poll_until(lambda: consumer.assignment() == all_of(f"{topic}-1") | all_of(f"{topic}-2"), consumer)
    while len(seen) < 6:
        seen += [int(record.value) for record in consumer.poll(1)]
    assert sorted(seen) == list(range(6))
    assert consumer.subscription() == {f"{topic}-1", f"{topic}-2"}


@pytest.mark.usefixtures("protocol")
def test_more_partitions_are_shared_out_too(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 0, 3)
    consumer = make(metadata_max_age_ms=100)
    consumer.subscribe([topic])
    poll_until(lambda: consumer.assignment() == all_of(topic), consumer)

    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_partitions({topic: 5})

    poll_until(lambda: len(consumer.assignment()) == 5, consumer)


@pytest.mark.usefixtures("protocol")
def test_another_subscription_replaces_the_first(cluster: Cluster, topic: str, make: Make) -> None:
    for name in ("a", "b"):
        fill(cluster, f"{topic}-{name}", 0, 3)
    consumer = make()
    consumer.subscribe([f"{topic}-a"])
    poll_until(lambda: consumer.assignment() == all_of(f"{topic}-a"), consumer)

    consumer.subscribe([f"{topic}-b"])
    poll_until(lambda: consumer.assignment() == all_of(f"{topic}-b"), consumer)
    consumer.unsubscribe()
    assert consumer.assignment() == set()


@pytest.mark.usefixtures("protocol")
def test_a_member_that_stops_polling_leaves_and_comes_back(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 0, 3)
    lazy, keen = make(max_poll_interval_ms=300), make()
    lazy.subscribe([topic])
    poll_until(lambda: lazy.assignment() == all_of(topic), lazy)

    keen.subscribe([topic])
    poll_until(lambda: keen.assignment() == all_of(topic), keen)
    poll_until(lambda: bool(lazy.assignment()) and len(keen.assignment()) < 3, lazy, keen)


@pytest.mark.usefixtures("protocol")
def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(
    cluster: Cluster, topic: str, make: Make
) -> None:
    fill(cluster, topic, 0, 3)
    other, listener = make(), Noting()
    other.subscribe([topic], listener=listener)
    static = make(group_instance_id="me")
    static.subscribe([topic])
    everything = all_of(topic)
    poll_until(
        lambda: (
            set() < static.assignment() < everything and listener.owned() == everything - static.assignment()
        ),
        other,
        static,
    )
    before, notes = static.assignment(), list(listener.notes)
    static.close()

    again = make(group_instance_id="me")
    again.subscribe([topic])
    poll_until(lambda: again.assignment() == before, other, again)
    assert listener.notes == notes


def test_a_slow_listener_does_not_cost_the_membership(cluster: Cluster, topic: str, make: Make) -> None:
    fill(cluster, topic, 0, 3)
    released = threading.Event()

    class Slow(RebalanceListener):
        def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
            released.wait(7)  # longer than the session: heartbeats must go on

    first = make(session_timeout_ms=6000)
    first.subscribe([topic], listener=Slow())
    poll_until(lambda: first.assignment() == all_of(topic), first)
    second = make()
    second.subscribe([topic])
    threading.Timer(0.5, released.set).start()
    poll_until(lambda: bool(second.assignment()) and bool(first.assignment()), first, second)
    assert not first.assignment() & second.assignment()


@pytest.mark.slow
def test_a_cooperative_member_commits_while_others_come_and_go(
    cluster: Cluster, topic: str, make: Make
) -> None:
    fill(cluster, topic, 0, 300)
    settings = {"partition_assignment_strategy": ["cooperative-sticky"], "enable_auto_commit": False}
    constant = make(max_poll_records=1, heartbeat_interval_ms=10, **settings)
    constant.subscribe([topic])
    poll_until(lambda: constant.assignment() == all_of(topic), constant)

    for _ in range(3):
        guest = make(**settings)
        guest.subscribe([topic])
        deadline = time.monotonic() + 60
        while not guest.assignment():
            assert time.monotonic() < deadline
            guest.poll()
            constant.poll()
            # In the midst of a rebalance or not: what it still has, it can commit.
            constant.commit()
        guest.close()
